// Workers and producers for dq, the delay queue of Redis and Valkey.

export type { Client, IoredisClient, NodeRedisClient } from './driver';
export { Cancelled, ConfigurationError, DqError, GiveUp, PayloadError, QueueFull, Retry, Say, Snooze } from './errors';
export { type BatchProcessor, Handler, handler, type HandlerOptions, type Processor } from './handler';
export type { Hooks, Logger } from './hooks';
export { bytesCodec, type Codec, type Envelope, jsonCodec } from './codec';
export type { Job } from './job';
export type { AddOptions, CronOptions, EveryOptions, JobOptions, NackOptions, RuleOptions, Settings } from './options';
export { Queue, type QueueOptions, type Tokens } from './queue';
export type { Group, JobInfo, Peeked, Reserved, Rule, State, Stats } from './records';
export type { Duration } from './times';
export { Worker } from './worker';
export type { WorkerOptions } from './worker-options';
