// Workers and producers for dq, the delay queue of Redis and Valkey.

export type { JoinedJob, NewJob, QueueOptions } from './adding';
export { bytesCodec, type Codec, type Envelope, jsonCodec } from './codec';
export type { Client, IoredisClient, NodeRedisClient } from './driver';
export {
  Cancelled,
  ConfigurationError,
  ControlError,
  DqError,
  EncodingError,
  GiveUp,
  JobFailed,
  PayloadError,
  QueueFull,
  type Refusal,
  Refused,
  Retry,
  Snooze,
  StepError,
  Suspended,
  TimedOut,
} from './errors';
export { type BatchProcessor, type ErrorType, Handler, handler, type HandlerOptions, type Processor } from './handler';
export type { Around, Hooks, Logger } from './hooks';
export { type Fresh, Kind, kind, type KindDefaults } from './kind';
export type { Job, SpawnedJob, WaitForOptions } from './job';
export type {
  AddOptions,
  AfterOptions,
  CronOptions,
  EveryOptions,
  JobOptions,
  NackOptions,
  OnDead,
  RuleOptions,
  ScanOptions,
  Settings,
  TouchOptions,
} from './options';
export type { AddAndWaitOptions, WaitOptions } from './outcomes';
export { Queue, type Results, type Tokens } from './queue';
export type { JobInfo, State } from './jobinfo';
export type { FailedAttempt } from './reading';
export type { GroupSettings, GroupStats, QueueGroup } from './group';
export type { Group, Peeked, ReservedJob, Stats } from './records';
export type { Rule } from './rule';
export type { CronHandlerOptions, EveryHandlerOptions } from './ruled';
export type { NamedRule, RuleChanges, RulesOptions } from './rules';
export type { JobResult } from './results';
export type { Duration } from './times';
export type { Explanation } from './explanation';
export { Worker } from './worker';
export type { WorkerOptions } from './worker-options';
