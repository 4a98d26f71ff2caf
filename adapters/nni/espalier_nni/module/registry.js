'use strict';
// Loaded by node before NNI's manager (see launcher.py): tells it what is registered, where it would start a Python that
// imports NNI to find out. Whatever is not as expected is left to NNI.
const Module = require('module');

const REGISTRY = 'ESPALIER_NNI_REGISTRY';
const text = process.env[REGISTRY];
delete process.env[REGISTRY];
const others = (process.env.NODE_OPTIONS || '').replace(`--require=${__filename}`, '').trim();
if (others === '') delete process.env.NODE_OPTIONS;
else process.env.NODE_OPTIONS = others;

if (text !== undefined) {
    const services = JSON.parse(text);
    const load = Module._load;
    Module._load = function (request, ...rest) {
        const exported = load.call(this, request, ...rest);
        if (request === 'common/nniConfig' && typeof exported.getCustomEnvironmentServiceConfig === 'function') {
            Module._load = load;
            exported.getCustomEnvironmentServiceConfig = async (name) =>
                Object.hasOwn(services, name) ? { name, ...services[name] } : null;
        }
        return exported;
    };
}
