// For tests of programs that use dq: a server whose clock the test moves, and queues that run handlers without it.

export { InlineQueue } from './inline';
export { Clock, type Span, TestServer, type TestServerOptions, withServer } from './server';
