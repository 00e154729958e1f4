// For tests of programs that use dq: a server whose clock the test moves, and queues that run handlers without it.

export { job, run, type Run, type TestJobOptions } from './inline';
export { Clock, type Span, TestServer, type TestServerOptions, withServer } from './server';
