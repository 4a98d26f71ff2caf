'use strict';
// One trial of an experiment as NNI sees it. What the service says is passed on in NNI's order: a metric only once NNI
// follows the trial, a status only after the metrics before it, and nothing twice.
const FINAL_STATES = new Set(['SUCCEEDED', 'FAILED', 'EARLY_STOPPED', 'USER_CANCELED', 'SYS_CANCELED']);
const STATES = new Set([...FINAL_STATES, 'WAITING', 'RUNNING']);

const keyOf = (type, sequence) => (type === 'FINAL' ? 'FINAL' : `${type} ${sequence}`);

class TrialRecord {
    // `nni` is the manager's side; `known` the metrics that NNI stored before a resume.
    constructor(nni, id, form, known) {
        this.nni = nni;
        this.seen = new Set();
        this.stored = new Set(known.map((metric) => keyOf(metric.type, metric.sequence)));
        this.metrics = [];
        this.latest = undefined;
        this.passing = Promise.resolve();
        this.detail = { id, status: 'WAITING', submitTime: Date.now(), workingDirectory: '', form, url: '' };
    }

    get hasEnded() { return FINAL_STATES.has(this.detail.status); }

    // Whether the trial is further than NNI has been told.
    get isBehind() { return this.latest !== undefined && !this.hasEnded && this.latest.state !== this.detail.status; }

    // Takes what the service says of the trial.
    update(trial) {
        if (this.hasEnded) return;
        if (!STATES.has(trial.state)) throw new Error(`trial ${this.detail.id}: the service names an unknown state "${trial.state}"`);
        for (const metric of trial.metrics ?? []) {
            const key = keyOf(metric.type, metric.sequence);
            if (this.seen.has(key)) continue;
            this.seen.add(key);
            this.metrics.push(metric);
        }
        if (trial.directory) {
            this.detail.workingDirectory = trial.directory;
            this.detail.url = trial.directory;
        }
        this.latest = trial;
    }

    // Passes on what has come; the detail says afterwards what NNI may know.
    async pass() {
        const turn = this.passing.then(() => this.passOn());
        this.passing = turn.catch(() => undefined);
        await turn;
    }

    async passOn() {
        if (this.hasEnded || this.nni.isStopping || !this.nni.follows(this.detail.id)) return;
        while (this.metrics.length > 0) await this.passMetric(this.metrics.shift());
        const trial = this.latest;
        if (trial === undefined) return;
        // A trial that pauses or moves is still running to NNI.
        if (trial.state === 'WAITING' && this.detail.status === 'RUNNING') return;
        this.detail.startTime = trial.started_at ?? this.detail.startTime;
        if (FINAL_STATES.has(trial.state)) {
            this.detail.endTime = trial.ended_at ?? Date.now();
            // Started and ended between two polls: NNI would believe that it ran since it was submitted.
            if (this.detail.status === 'WAITING' && trial.started_at) await this.nni.storeStart(this.detail);
        }
        this.detail.message = trial.message || undefined;
        this.detail.isEarlyStopped = trial.state === 'EARLY_STOPPED' || undefined;
        this.detail.status = trial.state;
        if (this.hasEnded) this.seen.clear();
    }

    async passMetric(metric) {
        const data = JSON.stringify({
            parameter_id: metric.parameter_id ?? null,
            trial_job_id: this.detail.id,
            type: metric.type,
            sequence: metric.sequence,
            value: typeof metric.value === 'string' ? metric.value : JSON.stringify(metric.value)
        });
        if (!this.stored.has(keyOf(metric.type, metric.sequence))) {
            await this.nni.deliver(this.detail.id, data, metric.type === 'FINAL');
        } else if (metric.type === 'FINAL') {
            this.nni.tellTuner(data);
        }
    }
}

module.exports = { TrialRecord };
