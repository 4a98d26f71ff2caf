'use strict';
// All that is known here of the inside of NNI 3.0, which is not developed any more. NNI offers third parties an interface
// (EnvironmentService) that polls every five seconds, has no logs and cannot cancel what waits; its manager itself speaks
// the complete one with RouterTrainingService, whose methods are therefore ours.
const globals = require('common/globals').globals;
const { DataStore } = require('common/datastore');
const { IocShim } = require('common/ioc_shim');
const { getLogger } = require('common/log');
const { Manager } = require('common/manager');
const utils = require('common/utils');
const { NEW_TRIAL_JOB, NO_MORE_TRIAL_JOBS, REPORT_METRIC_DATA, REQUEST_TRIAL_JOBS, TRIAL_END } = require('core/commands');
const { RouterTrainingService } = require('training_service/reusable/routerTrainingService');

const SHORTEST_SLEEP_MS = 10;
const UNIQUE_S = 1e-6; // tells the interval between polls from NNI's other sleeps

const SHORTEST_HOLD_MS = 500;
const LONGEST_HOLD_MS = 5000;

const METHODS = [
    'listTrialJobs', 'getTrialJob', 'getTrialFile', 'addTrialJobMetricListener', 'removeTrialJobMetricListener',
    'submitTrialJob', 'updateTrialJob', 'cancelTrialJob', 'setClusterMetadata', 'getClusterMetadata', 'cleanUp', 'run',
    'getTrialOutputLocalPath', 'fetchTrialOutput'];

// NNI's training service is `service` from now on. One manager process has one experiment.
function takeOver(service) {
    for (const name of METHODS) {
        RouterTrainingService.prototype[name] = (...parameters) => service[name](...parameters);
    }
}

// NNI's manager as a training service meets it.
class NniManager {
    constructor() {
        this.manager = IocShim.get(Manager);
        this.log = getLogger('Espalier');
        this.sleepers = new Set();
        this.finals = new Map(); // by trial: when the tuner was told its final value, and what it had been asked before
        this.requested = 0;
        this.answered = 0;
    }

    get experiment() { return globals.args.experimentId; }

    get resumed() { return globals.args.action === 'resume'; }

    get isListOfServices() { return globals.args.mode === 'hybrid'; }

    // While it stops it cancels what runs, and stores no event: all that comes back with a resume.
    get isStopping() { return ['STOPPING', 'STOPPED'].includes(this.manager.getStatus().status); }

    // All trials have ended, until the user asks for more.
    get isDone() { return this.manager.getStatus().status === 'DONE'; }

    // NNI's manager sleeps between its polls, `seconds` long where nothing happens. It wakes when the tuner has something for
    // it, and when wake() is called; while `hasNews()` or a trial can be submitted it hardly sleeps at all.
    pollWhenNeeded(seconds, hasNews) {
        this.hasNews = hasNews;
        this.manager.pollInterval = seconds + UNIQUE_S;
        const interval = 1000 * this.manager.pollInterval;
        const sleep = utils.delay;
        utils.delay = (milliseconds) => (milliseconds === interval ? this.sleepUntilNeeded(interval) : sleep(milliseconds));
        const onTunerCommand = this.manager.onTunerCommand.bind(this.manager);
        this.manager.onTunerCommand = async (...command) => {
            await onTunerCommand(...command);
            if (command[0] === NEW_TRIAL_JOB) this.answered += 1;
            if (command[0] === NO_MORE_TRIAL_JOBS) this.answered = this.requested;
            this.wake();
        };
    }

    // NNI's dispatcher takes final values and requests from one queue, ends of trials from another. A tuner that hears the end
    // of a trial before its final value may crash (TPE does). So ends are held back until what was asked before is answered.
    holdEndsBack() {
        const dispatcher = this.manager.dispatcher;
        const send = dispatcher.sendCommand.bind(dispatcher);
        dispatcher.sendCommand = (type, content) => {
            if (type === REQUEST_TRIAL_JOBS) this.requested += Number(content);
            if (type === TRIAL_END) this.sendEnd(JSON.parse(content).trial_job_id, () => send(type, content));
            else send(type, content);
        };
    }

    sendEnd(trial, send) {
        const final = this.finals.get(trial);
        const held = final === undefined ? Infinity : Date.now() - final.at;
        const isHeard = final === undefined || (held >= SHORTEST_HOLD_MS && this.answered >= final.requested);
        if (isHeard || held >= LONGEST_HOLD_MS) {
            this.finals.delete(trial);
            if (!this.isStopping) send();
        } else {
            setTimeout(() => this.sendEnd(trial, send), SHORTEST_HOLD_MS / 5);
        }
    }

    // It may end without a word to NNI's manager, which would wait for ever.
    get tunerIsGone() {
        if (!(this.manager.dispatcherPid > 0) || this.isStopping) return false;
        try {
            process.kill(this.manager.dispatcherPid, 0);
            return false;
        } catch (error) {
            return error.code === 'ESRCH';
        }
    }

    sleepUntilNeeded(milliseconds) {
        return new Promise((resolve) => {
            const done = () => {
                clearTimeout(timer);
                this.sleepers.delete(done);
                resolve();
            };
            const timer = setTimeout(done, this.isNeeded ? SHORTEST_SLEEP_MS : milliseconds);
            this.sleepers.add(done);
        });
    }

    get isNeeded() {
        const { waitingTrials, trialJobs, experimentProfile, currSubmittedTrialNum, maxTrialNum, maxDuration } = this.manager;
        const isOver = currSubmittedTrialNum >= maxTrialNum || experimentProfile.execDuration > maxDuration;
        const hasRoom = trialJobs.size < experimentProfile.params.trialConcurrency;
        return this.hasNews() || (waitingTrials.length > 0 && hasRoom && !isOver);
    }

    wake() {
        if (this.isNeeded) for (const done of [...this.sleepers]) done();
    }

    newTrialId() { return utils.uniqueString(5); }

    // Metrics of other trials are thrown away.
    follows(trial) { return this.manager.trialJobs.has(trial); }

    // Returns when NNI has stored a metric and told the tuner; a status must not overtake it.
    async deliver(trial, data, isFinal) {
        try {
            await this.manager.onTrialJobMetrics({ id: trial, data });
            if (isFinal) this.finals.set(trial, { at: Date.now(), requested: this.requested });
        } catch (error) {
            // There is no tuner any more.
            if (!this.isStopping) throw error;
        }
    }

    // For a metric that is stored already, from before a resume.
    tellTuner(data) { this.manager.dispatcher?.sendCommand(REPORT_METRIC_DATA, data); }

    // A start that no poll will see.
    async storeStart(detail) {
        await IocShim.get(DataStore).storeTrialJobEvent('RUNNING', detail.id, undefined, { ...detail, status: 'RUNNING' });
    }

    // The metrics that NNI has of a trial: {type, sequence}.
    async storedMetrics(trial) { return await IocShim.get(DataStore).getMetricData(trial); }
}

module.exports = { NniManager, takeOver };
