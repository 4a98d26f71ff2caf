'use strict';
// NNI's training service of version 1, as its manager calls it, on the service's interface for NNI.
const { Gone, ServiceClient } = require('./service_client');
const { TrialRecord } = require('./trial_record');

const EVENTS_WAIT_S = 3; // so short that silence is noticed
const EVENTS_TIMEOUT_MS = 5000;
const PAUSE_MS = 200; // after an answer that told nothing, and did not wait: the service has many to tell
const PAUSE_WITHOUT_SERVICE_MS = 2000;
const STOP_TIMEOUT_MS = 20000; // NNI gives the whole shutdown 60 s

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Experiment {
    // `problem`, if any, is why the experiment cannot run; NNI hears it where it lists errors.
    constructor(config, nni, problem) {
        this.config = config;
        this.nni = nni;
        this.trials = new Map();
        this.directories = new Map();
        this.news = new Set(); // trials whose status NNI has not asked for since it changed
        this.problem = problem;
        try {
            if (problem === undefined) this.client = new ServiceClient(config);
        } catch (error) {
            this.problem = error;
        }
        this.path = `/nni/v1/experiments/${encodeURIComponent(nni.experiment)}`;
        this.opened = new Promise((resolve, reject) => { this.setOpened = { resolve, reject }; });
        this.opened.catch(() => undefined);
        this.over = new Promise((resolve) => { this.setOver = resolve; });
        this.isOpen = false;
        this.stopped = false;
    }

    async run() {
        try {
            if (this.problem !== undefined) throw this.problem;
            this.nni.holdEndsBack();
            await this.open();
            this.isOpen = true;
            this.setOpened.resolve();
            await Promise.race([this.follow(), this.over]);
        } catch (error) {
            if (this.stopped) return;
            this.setOpened.reject(error);
            throw error;
        }
    }

    async open() {
        const service = await this.client.open();
        await this.client.call('PUT', this.path, { body: this.definition() });
        this.nni.log.info(`Espalier ${service.version} at ${this.client.address}: ${service.slots} slots on ${service.nodes} nodes`);
    }

    definition() {
        const config = this.config;
        const environment = {};
        for (const [name, value] of Object.entries(config.environment ?? {})) environment[name] = String(value);
        return {
            command: config.trialCommand,
            directory: config.trialCodeDirectory,
            min_slots: config.minSlots,
            max_slots: config.maxSlots,
            slots_per_gpu: config.slotsPerGpu,
            gpus_per_trial: config.trialGpuNumber,
            checkpoint_directory: config.checkpointDirectory,
            adaptive: config.adaptive,
            priority: config.priority,
            environment,
            maximize: config.maximize,
            promise_assessor: config.promiseAssessor,
            stop_grace_s: config.stopGrace,
            resume: this.nni.resumed
        };
    }

    // Takes what happens to the trials, for as long as the experiment lasts.
    async follow() {
        let cursor = '';
        while (!this.stopped) {
            const begin = Date.now();
            const events = await this.events(cursor);
            if (events === undefined) continue;
            if (this.nni.tunerIsGone) {
                throw new Error('NNI\'s tuner has ended: the experiment\'s log/dispatcher.log says why. Trials that run go on; stop and ' +
                    'resume the experiment (nnictl stop, nnictl resume) when it is mended.');
            }
            cursor = events.cursor;
            for (const trial of events.trials) {
                this.directories.set(trial.trial, trial.directory);
                const record = this.trials.get(trial.trial);
                if (record === undefined) continue;
                await this.update(record, trial);
            }
            this.nni.wake();
            if (events.trials.length === 0 && Date.now() - begin < PAUSE_MS) await pause(PAUSE_MS);
        }
    }

    // Undefined where the service is gone, and not needed: the experiment is done.
    async events(cursor) {
        try {
            return await this.client.call('GET', `${this.path}/events?after=${encodeURIComponent(cursor)}&wait_s=${EVENTS_WAIT_S}`,
                { timeoutMs: EVENTS_TIMEOUT_MS });
        } catch (error) {
            if (!(error instanceof Gone && this.nni.isDone)) throw error;
            await pause(PAUSE_WITHOUT_SERVICE_MS);
            return undefined;
        }
    }

    async submitTrialJob(form) {
        await this.opened;
        const id = form.id ?? this.nni.newTrialId();
        const known = form.id === undefined ? [] : await this.nni.storedMetrics(id);
        const record = new TrialRecord(this.nni, id, form, known ?? []);
        this.trials.set(id, record);
        const trial = await this.client.call('PUT', this.trialPath(id),
            { body: { sequence: form.sequenceId, parameter: form.hyperParameters.value } });
        await this.update(record, trial);
        return { ...record.detail };
    }

    get hasNews() { return this.news.size > 0; }

    async update(record, trial) {
        const { id, status } = record.detail;
        record.update(trial);
        await record.pass();
        if (record.detail.status !== status || record.isBehind) this.news.add(id);
    }

    async updateTrialJob(id, form) {
        await this.client.call('PUT', `${this.trialPath(id)}/parameter`, { body: { parameter: form.hyperParameters.value } });
        return { ...this.record(id).detail };
    }

    // NNI repeats it at every poll for a trial that is over its time, and calls it for what ended meanwhile.
    async cancelTrialJob(id, isEarlyStopped) {
        if (this.nni.isStopping) return;
        const record = this.record(id);
        if (record.hasEnded) {
            if (isEarlyStopped || this.nni.follows(id)) return;
            // NNI would show it as cancelled.
            throw new Error(`trial ${id} has ended already: ${record.detail.status}`);
        }
        await this.client.call('DELETE', `${this.trialPath(id)}${isEarlyStopped ? '?early_stopped=1' : ''}`);
    }

    async getTrialJob(id) {
        const record = this.record(id);
        await record.pass();
        this.news.delete(id);
        return { ...record.detail }; // NNI looks at it again after it has waited for its database
    }

    async listTrialJobs() { return [...this.trials.values()].map((record) => ({ ...record.detail })); }

    async getTrialFile(id, name) {
        this.needClient();
        return await this.client.call('GET', `${this.trialPath(id)}/files/${encodeURIComponent(name)}`, { asText: true });
    }

    // NNI's TensorBoard reads the folder "tensorboard" in here.
    async getTrialOutputLocalPath(id) {
        if (!this.directories.has(id)) {
            this.needClient();
            const events = await this.client.call('GET', `${this.path}/events?after=&wait_s=0`);
            for (const trial of events.trials) this.directories.set(trial.trial, trial.directory);
        }
        if (!this.directories.get(id)) throw new Error(`trial ${id} has no directory: it has not started`);
        return this.directories.get(id);
    }

    // Agents share their file system with NNI's machine, or TensorBoard shows nothing.
    async fetchTrialOutput(id, subpath) { this.nni.log.debug(`nothing to fetch for trial ${id}: ${subpath}`); }

    addTrialJobMetricListener() {}

    removeTrialJobMetricListener() {}

    async setClusterMetadata() {}

    async getClusterMetadata() { return ''; }

    // What runs is checkpointed and stopped by the service, which may be gone.
    async cleanUp() {
        this.stopped = true;
        try {
            if (this.isOpen) await this.client.once('POST', `${this.path}/stop`, {}, STOP_TIMEOUT_MS);
        } catch (error) {
            this.nni.log.error(`The service was not told that the experiment has stopped: ${error.message}`);
        }
        this.client?.close();
        this.setOpened.reject(new Error('the experiment has stopped'));
        this.setOver();
    }

    trialPath(id) { return `${this.path}/trials/${encodeURIComponent(id)}`; }

    record(id) {
        const record = this.trials.get(id);
        if (record === undefined) throw new Error(`trial ${id} is not one that waits or runs`);
        return record;
    }

    needClient() {
        if (this.client === undefined) throw this.problem;
    }
}

module.exports = { Experiment };
