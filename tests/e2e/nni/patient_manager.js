// NNI's manager gives its tuner 10 s to import NNI and connect, which is not enough where several
// tests share two cores. Loaded before the manager, for tests only: it gives it a minute.
const start = globalThis.setTimeout;
const patient = (run, ms, ...rest) => start(run, ms === 10000 ? 60000 : ms, ...rest);
Object.defineProperties(patient, Object.getOwnPropertyDescriptors(start));
globalThis.setTimeout = patient;

// And a clock of its own, which stands still where the manager does: how long nobody has answered it
// is to be told without what a busy machine took from it.
const LONGEST_TICK_MS = 1000;
const now = Date.now;
let seen = now();
let stoodStill = 0;
Date.now = () => {
    const tick = now() - seen;
    seen += tick;
    if (tick > LONGEST_TICK_MS) stoodStill += tick;
    return seen - stoodStill;
};
setInterval(Date.now, 100).unref();
