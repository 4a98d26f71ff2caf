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
const { REPORT_METRIC_DATA } = require('core/commands');
const { RouterTrainingService } = require('training_service/reusable/routerTrainingService');

const SHORTEST_SLEEP_MS = 10;
const UNIQUE_S = 1e-6; // tells the interval between polls from NNI's other sleeps

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
            this.wake();
        };
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
    async deliver(trial, data) {
        try {
            await this.manager.onTrialJobMetrics({ id: trial, data });
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
