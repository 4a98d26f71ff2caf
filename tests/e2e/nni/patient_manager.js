// NNI's manager gives its tuner 10 s to import NNI and connect, which is not enough where several
// tests share two cores. Loaded before the manager, for tests only: it gives it a minute.
const start = globalThis.setTimeout;
const patient = (run, ms, ...rest) => start(run, ms === 10000 ? 60000 : ms, ...rest);
Object.defineProperties(patient, Object.getOwnPropertyDescriptors(start));
globalThis.setTimeout = patient;
