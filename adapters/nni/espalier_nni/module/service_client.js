'use strict';
// The service's HTTP interface for NNI, /nni/v1. Every call of it may be repeated, and is while the service does not
// answer, until it counts as gone. One object an experiment; calls may overlap.
const fs = require('fs');
const http = require('http');
const https = require('https');

const PROTOCOL = 1;
const PACKAGE = 'espalier-nni 0.1.0';
const CALL_TIMEOUT_MS = 6000;
const FIRST_PATIENCE_MS = 3000; // for a service that is being started beside the experiment
const PATIENCE_MS = 7500; // NNI's users are told within 10 s that it is gone
const LONGEST_CALL_MS = 30000; // of one call that fails while others do not
const SHORTEST_TIMEOUT_MS = 1000;
const RETRY_PAUSE_MS = 200;
const MOST_ANSWER_BYTES = 256 * 1024 * 1024;

// The service answered, and said no.
class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

// Nobody has answered for long enough.
class Gone extends Error {}

class ServiceClient {
    constructor(config) {
        this.address = config.serviceAddress;
        this.tokenFile = config.tokenFile;
        this.headers = {};
        if (this.tokenFile !== undefined) {
            this.headers.authorization = `Bearer ${fs.readFileSync(this.tokenFile, 'utf8').trim()}`;
        }
        this.transport = this.address.startsWith('https:') ? https : http;
        const ca = config.tlsCa === undefined ? undefined : fs.readFileSync(config.tlsCa);
        this.agent = new this.transport.Agent({ keepAlive: true, maxSockets: 32, ca });
        this.lastAnswer = undefined;
        this.closed = false;
    }

    // Drops all connections and what is being asked.
    close() {
        this.closed = true;
        this.agent.destroy();
    }

    // Says what the service is, after making sure that both sides speak the same protocol.
    async open() {
        let service;
        try {
            service = await this.call('GET', '/nni/v1/service');
        } catch (error) {
            if (error instanceof Refused && error.status === 404) {
                throw new Refused(404, `What answers at ${this.address} has no interface for NNI: it is another program, or an ` +
                    `Espalier older than ${PACKAGE}. Check serviceAddress (tuner serve prints it as "HTTP"), or update the service.`);
            }
            throw error;
        }
        if (service === null || typeof service !== 'object' || service.name !== 'espalier') {
            throw new Refused(200, `What answers at ${this.address} is no Espalier service: check serviceAddress ` +
                '(tuner serve prints it as "HTTP").');
        }
        if (service.protocol !== PROTOCOL) {
            const newer = service.protocol > PROTOCOL;
            throw new Refused(200, `Espalier ${service.version} at ${this.address} speaks protocol ${service.protocol} with NNI, ` +
                `${PACKAGE} protocol ${PROTOCOL}: the ${newer ? 'package' : 'service'} is the older one, update it` +
                (newer ? ' (pip install adapters/nni of the service\'s release).' : '.'));
        }
        return service;
    }

    // The parsed answer, or its text where `asText`. Throws Refused or Gone.
    async call(method, path, { body, asText = false, timeoutMs = CALL_TIMEOUT_MS } = {}) {
        const begin = Date.now();
        for (let attempt = 1; ; attempt++) {
            const patience = this.lastAnswer === undefined ? FIRST_PATIENCE_MS : PATIENCE_MS;
            const silence = () => Date.now() - (this.lastAnswer ?? begin);
            const left = attempt === 1 ? timeoutMs : Math.max(SHORTEST_TIMEOUT_MS, patience - silence());
            try {
                const text = await this.once(method, path, body, Math.min(timeoutMs, left));
                return asText ? text : this.parsed(text, path);
            } catch (error) {
                if (error instanceof Refused || this.closed) throw error;
                const tired = silence() >= patience || Date.now() - begin > LONGEST_CALL_MS;
                if (attempt > 1 && tired) throw this.gone(error);
                await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
            }
        }
    }

    parsed(text, path) {
        if (text === '') return undefined;
        try {
            return JSON.parse(text);
        } catch (error) {
            throw new Refused(200, `What answers at ${this.address}${path} does not speak JSON: check serviceAddress ` +
                '(tuner serve prints it as "HTTP").');
        }
    }

    gone(error) {
        const reason = error.code ?? error.message;
        if (this.lastAnswer === undefined) {
            return new Gone(`No Espalier service answers at ${this.address} (${reason}): check serviceAddress, or start one with ` +
                '`tuner serve --http HOST:PORT ...`, which prints it as "HTTP".');
        }
        const seconds = Math.round((Date.now() - this.lastAnswer) / 1000);
        return new Gone(`Espalier at ${this.address} has not answered for ${seconds} s (${reason}). Start it again, then stop ` +
            'and resume this experiment (nnictl stop, nnictl resume): its trials go on from their checkpoints.');
    }

    once(method, path, body, timeoutMs) {
        return new Promise((resolve, reject) => {
            const text = body === undefined ? undefined : JSON.stringify(body);
            const headers = { ...this.headers };
            if (text !== undefined) {
                headers['content-type'] = 'application/json';
                headers['content-length'] = Buffer.byteLength(text);
            }
            const request = this.transport.request(this.address + path, { method, headers, agent: this.agent });
            const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
            const fail = (error) => {
                clearTimeout(timer);
                reject(this.explained(error));
            };
            request.on('error', fail);
            request.on('response', (response) => {
                const parts = [];
                let bytes = 0;
                response.on('error', fail);
                response.on('data', (part) => {
                    bytes += part.length;
                    if (bytes > MOST_ANSWER_BYTES) request.destroy(new Refused(413, `the answer to ${path} is too large`));
                    else parts.push(part);
                });
                response.on('end', () => {
                    clearTimeout(timer);
                    this.settle(response.statusCode, Buffer.concat(parts).toString('utf8'), resolve, reject);
                });
                response.on('aborted', () => fail(new Error('the connection broke')));
            });
            request.end(text);
        });
    }

    // An answer is one of the service itself unless somebody between says that it is away.
    settle(status, text, resolve, reject) {
        if (status === 502 || status === 503 || status === 504) {
            reject(new Error(`HTTP status ${status}`));
            return;
        }
        this.lastAnswer = Date.now();
        if (status >= 200 && status < 300) resolve(text);
        else reject(new Refused(status, this.refusal(status, text)));
    }

    refusal(status, text) {
        if (status === 401 || status === 403) {
            const shown = this.tokenFile === undefined
                ? 'none was given: set tokenFile (or the environment variable ESPALIER_TOKEN_FILE)'
                : `it refuses the one in "${this.tokenFile}": set tokenFile`;
            return `Espalier at ${this.address} wants its token, and ${shown} to a file with your token (tuner token create).`;
        }
        let message = text;
        try {
            message = JSON.parse(text).error ?? text;
        } catch (error) {
            // Not one of the service's own messages, shown as it is.
        }
        return `Espalier at ${this.address}: ${String(message).slice(0, 2000).trim() || `HTTP status ${status}`}`;
    }

    // Certificates that do not fit stay so, however often one asks.
    explained(error) {
        const code = String(error.code ?? '');
        if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|HOSTNAME_MISMATCH/.test(code)) {
            return new Refused(0, `The certificate of ${this.address} is not to be trusted (${code}): set tlsCa (or the environment ` +
                'variable ESPALIER_TLS_CA) to a file with the certificates that vouch for it.');
        }
        if (code === 'EPROTO' || code === 'HPE_INVALID_CONSTANT') {
            return new Refused(0, `${this.address} does not speak ${this.address.split(':')[0].toUpperCase()} (${code}): give ` +
                'serviceAddress with https:// for a service with TLS, with http:// for one without.');
        }
        if (code === 'ENOTFOUND') {
            return new Refused(0, `There is no host of the name in serviceAddress, ${this.address}.`);
        }
        return error;
    }
}

module.exports = { Gone, Refused, ServiceClient };
