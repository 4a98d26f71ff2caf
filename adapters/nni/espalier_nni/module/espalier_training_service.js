'use strict';
// What NNI's manager loads for `platform: espalier_nni` and `platform: adl`. NNI believes it to be an environment service,
// and never runs it as one.
const { Experiment } = require('./experiment');
const { NniManager, takeOver } = require('./nni_internals');

class EspalierTrainingService {
    constructor(config) {
        const nni = new NniManager();
        const problem = nni.isListOfServices
            ? new Error(`${config.platform} cannot share an experiment with other platforms: give one training service instead of ` +
                'a list. Several machines are agents of one Espalier pool (tuner agent --join).')
            : undefined;
        const experiment = new Experiment(config, nni, problem);
        takeOver(experiment);
        nni.pollWhenNeeded(config.pollInterval, () => experiment.hasNews);
    }

    initCommandChannel() {}

    get getCommandChannel() { return undefined; }

    get environmentMaintenceLoopInterval() { return 5000; }
}

module.exports = { EspalierTrainingService };
