// Every block of code in the README runs.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { after, before, beforeEach, test } from 'node:test';
import * as dqRedis from 'dq-redis';
import { withServer } from 'dq-redis/testing';

const dq = withServer({ before, after, beforeEach });
const root = new URL('..', import.meta.url).pathname;
const text = readFileSync(`${root}/README.md`, 'utf8');
const blocks = [...text.matchAll(/```(javascript|typescript)\n(.*?)```/gs)].map(([, language, code]) => ({
  language,
  code,
}));

/** What a block may take for granted; the worker of orders ends when its job is done. */
const GIVEN = {
  'closed order': `
const closed = [];
console.log = (said, order) => {
  closed.push(order);
  setTimeout(() => process.kill(process.pid, 'SIGTERM'), 50);
};
process.on('exit', () => closed.join() === '17' || process.exit(1));
`,
  queue: "const queue = new (await import('dq-redis')).Queue(process.env.DQ_URL, 'orders');",
};

function program(code) {
  const isDeclared = (name) => new RegExp(`\\b(const|import) .*\\b${name}\\b.* (=|from) `).test(code);
  const isUsed = (name) => new RegExp(`\\b${name}\\b`).test(code);
  const given = Object.entries(GIVEN).filter(([name]) => isUsed(name) && !isDeclared(name));
  const ready = code
    .replaceAll("'redis://localhost'", 'process.env.DQ_URL!')
    .replace('delay: 30 * 60_000', 'delay: 0')
    .replaceAll('./example/', '../example/');
  return [...given.map(([, lines]) => lines), ready].join('\n');
}

/** What is behind ! is for the compiler only. */
function compile(folder, { language, code }) {
  if (language === 'javascript')
    return writeFileSync(`${folder}/block.mjs`, program(code).replaceAll('DQ_URL!', 'DQ_URL'));
  writeFileSync(`${folder}/block.mts`, program(code));
  const compilerOptions = { strict: true, target: 'es2022', module: 'node20', types: ['node'], skipLibCheck: true };
  writeFileSync(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions, files: ['block.mts'] }));
  const ran = spawnSync(`${root}/node_modules/.bin/tsc`, ['-p', folder], { encoding: 'utf8' });
  assert.equal(ran.status, 0, ran.stdout);
}

test('there are blocks', () => assert.ok(blocks.length >= 5));

for (const [n, block] of blocks.entries()) {
  test(`block ${n + 1} runs: ${block.code.split('\n')[0]}`, { timeout: 120_000 }, () => {
    const folder = mkdtempSync(`${root}/readme-`);
    try {
      compile(folder, block);
      const isTest = block.code.includes('node:test');
      const ran = spawnSync(process.execPath, isTest ? ['--test', `${folder}/block.mjs`] : [`${folder}/block.mjs`], {
        env: { ...process.env, DQ_URL: dq.url, NODE_TEST_CONTEXT: undefined },
        encoding: 'utf8',
        timeout: 100_000,
      });
      assert.equal(ran.status, 0, `${ran.stdout}\n${ran.stderr}\n${program(block.code)}`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test('what is named in the text exists', () => {
  for (const name of ['Retry', 'Snooze', 'GiveUp', 'Cancelled', 'ConfigurationError']) {
    assert.ok(text.includes(name) && dqRedis[name], name);
  }
  for (const [, name] of text.matchAll(/`queue\.(\w+)\(/g)) assert.ok(name in dqRedis.Queue.prototype, name);
  for (const [, name] of text.matchAll(/`worker\.(\w+)\(/g)) assert.ok(name in dqRedis.Worker.prototype, name);
});
