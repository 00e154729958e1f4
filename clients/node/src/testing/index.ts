// For tests of programs that use dq: a server with a clock that tests move, and handlers run without a server.

export { InlineQueue } from './inline';
export { Clock, type Span, TestServer, type TestServerOptions, withServer } from './server';
