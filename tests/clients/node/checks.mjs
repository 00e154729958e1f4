// What the probes share: a runner of checks, each told its server's port by PORT_<CHECK>.

import assert from 'node:assert/strict';

export const port = (check) => Number(process.env[`PORT_${check.toUpperCase()}`]);

export async function run(checks) {
  let failed = false;
  for (const check of checks) {
    try {
      await check();
      console.log(`ok ${check.name}`);
    } catch (error) {
      failed = true;
      console.log(`FAILED ${check.name}: ${String(error.message).split('\n')[0]}`);
      console.error(error);
    }
  }
  process.exit(failed ? 1 : 0);
}

// Whether the promise is settled within so many milliseconds.
export async function settled(promise, ms) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  return Promise.race([promise.then(() => true, () => true), late]).finally(() => clearTimeout(timer));
}

// What is the same for both libraries, given `ask` and `askBytes`, which send a command and give its
// reply with texts or buffers.
export function common(ask, askBytes) {
  return {
    async binary() {
      const id = Buffer.from('00ff0d0a', 'hex');
      const payload = Buffer.concat([Buffer.from('00ffc328', 'hex'), Buffer.from([...Array(256).keys()])]);
      assert.deepEqual(await askBytes('binary', 'DQ.ADD', 'binary', id, payload), id);
      const job = await askBytes('binary', 'DQ.BPOP', 'binary', '1');
      assert.deepEqual(job.slice(1, 3), [id, payload]);
      assert.equal(await ask('binary', 'DQ.ACK', 'binary', 'WITHTOKENS', id, job[3]), 1);
      // What texts cost: the bytes are lost, silently.
      await ask('binary', 'DQ.ADD', 'binary', id, payload);
      const text = await ask('binary', 'DQ.POP', 'binary');
      assert.notDeepEqual(Buffer.from(text[0]), id);
    },

    async tokens() {
      await ask('tokens', 'DQ.ADD', 'tokens', 'a', 'x');
      const [, , token] = await ask('tokens', 'DQ.POP', 'tokens');
      assert.equal(typeof token, 'string');
      assert.ok(BigInt(token) > Number.MAX_SAFE_INTEGER);
      // What a number makes of it.
      const next = String(BigInt(token) + 1n);
      assert.equal(await ask('tokens', 'DQ.ACK', 'tokens', 'WITHTOKENS', 'a', next), 0);
      assert.equal(await ask('tokens', 'DQ.ACK', 'tokens', 'WITHTOKENS', 'a', token), 1);
    },
  };
}
