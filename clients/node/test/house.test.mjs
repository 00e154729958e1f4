// The package, and how its tests end.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const root = new URL('..', import.meta.url).pathname;

test('npm pack: with the licence, again where it is installed, and what lacks there', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(`${tmpdir()}/dq-pack-`);
  const pack = (from, to) => {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', to], { cwd: from, stdio: 'pipe' });
    const [tarball] = readdirSync(to).filter((name) => name.endsWith('.tgz'));
    return execFileSync('tar', ['-tzf', join(to, tarball)], { encoding: 'utf8' })
      .split('\n')
      .sort();
  };
  try {
    const source = join(folder, 'source');
    for (const name of ['package.json', 'README.md', 'LICENSE', 'tsconfig.json', 'src']) {
      cpSync(root + name, join(source, name), { recursive: true });
    }
    execFileSync('ln', ['-s', `${root}node_modules`, join(source, 'node_modules')]);
    const files = pack(source, folder);
    for (const name of ['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts']) {
      assert.ok(files.includes(`package/${name}`), name);
    }
    execFileSync('tar', ['-xzf', join(folder, 'dq-redis-0.1.0.tgz'), '-C', folder]);
    const installed = join(folder, 'package');
    const again = mkdtempSync(`${folder}/again-`);
    assert.deepEqual(pack(installed, again), files);
    assert.ok(existsSync(join(installed, 'dist/index.js')));
    const alone = `new (require('dq-redis').Queue)('redis://x', 'q').len().catch(({ message }) => console.log(message))`;
    const said = execFileSync('node', ['-e', alone], { cwd: installed, encoding: 'utf8' });
    assert.match(said, /neither ioredis nor redis is installed/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the tests end, whatever a failed one leaves and says', { timeout: 200_000 }, () => {
  const folder = mkdtempSync(`${tmpdir()}/dq-tests-`);
  const file = join(folder, 'long.test.mjs');
  const fails = "throw new Error('x'.repeat(3_000_000))";
  writeFileSync(
    file,
    `import { test } from 'node:test';\ntest('long', () => { setInterval(() => {}, 1000); ${fails}; });\n`,
  );
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const [program, ...options] = scripts.test.split(' ').filter((word) => !word.includes('*'));
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const ended = spawnSync(program, [...options, file], { cwd: root, env, timeout: 120_000, killSignal: 'SIGKILL' });
  rmSync(folder, { recursive: true });
  assert.deepEqual([ended.signal, ended.status], [null, 1]);
});
