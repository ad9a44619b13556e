// SPDX-License-Identifier: Apache-2.0
//
// Draws plots: reads a line of JSON for each from stdin, {"id": ..., "spec": a Vega-Lite
// specification}, and answers it with a line, {"id": ..., "svg": ...} or {"id": ...,
// "error": ...}. Ends when stdin does. Nothing is fetched: a specification holds its data.
import readline from 'node:readline';
import * as vega from 'vega';
import { compile } from 'vega-lite';

// Without a canvas Vega takes every character for 0.8 em wide, and leaves out labels that
// would fit. These are the widths of common sans-serif fonts, on the wide side.
const NARROW = /[ijlftrI.,:;!|()'\s]/;
const WIDE = /[mwMW%@]/;
const width = (char) => (NARROW.test(char) ? 0.34 : WIDE.test(char) ? 0.92 : /[A-Z]/.test(char) ? 0.7 : 0.58);
vega.textMetrics.width = (item, text) =>
    [...String(text ?? item.text ?? '')].reduce((sum, char) => sum + width(char), 0) * vega.fontSize(item);

const refuse = () => Promise.reject(new Error('a plot must hold its data'));
const loader = { ...vega.loader(), load: refuse, http: refuse, file: refuse };

async function draw(spec) {
    const problems = [];
    const logger = { level: () => logger, error: (...e) => (problems.push(e.join(' ')), logger) };
    logger.warn = logger.info = logger.debug = () => logger;
    const view = new vega.View(vega.parse(compile(spec, { logger }).spec), { renderer: 'none', loader, logger });
    const svg = await view.toSVG();
    view.finalize();
    if (problems.length > 0) throw new Error(problems.join('; '));
    return svg;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, spec } = JSON.parse(line);
    let answer;
    try {
        answer = { id, svg: await draw(spec) };
    } catch (error) {
        answer = { id, error: String(error.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
}
