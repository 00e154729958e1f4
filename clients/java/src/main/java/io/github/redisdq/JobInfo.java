package io.github.redisdq;

// Written from docs/libraries.md by `make generated`; DO NOT EDIT.

import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * A job as DQ.GET shows it. What it does not have is null. Its {@link #data}, {@link #kind} and {@link #headers} are those of the payload.
 *
 * @param id The job's.
 * @param payload What was added.
 * @param state Where the job is.
 * @param priority Smaller is delivered first.
 * @param due When it is due; nothing of a blocked job without a time of its own.
 * @param deadline When its lease ends; nothing unless reserved.
 * @param ttr How long its leases are.
 * @param attempts Deliveries so far.
 * @param maxAttempts Deliveries allowed; 0: no limit.
 * @param backoff The waits after failures.
 * @param label What kind of job it is, for those who look; it changes nothing of how the job is served.
 * @param expires When its TTL ends it.
 * @param token The current one.
 * @param reason Why it failed last.
 * @param failed When that was.
 * @param history Its last attempts that failed, as many as the queue's {@code HISTORY} keeps.
 * @param group The group that it is in.
 * @param next The payload of the job that takes its place when its run is over.
 * @param rule How a recurring job comes again.
 * @param progress What its handler reported last.
 * @param keep How long it stays once it is done; nothing: as its queue says.
 * @param cost What a delivery counts for {@code RATE} and {@code GROUPRATE}.
 * @param awaits The signal that it waits for.
 * @param steps What its handler has kept, by name.
 * @param started The latest delivery, of a reserved or done job.
 * @param client Who works on it: the name or the address of the connection that it was delivered to, if the server knows it.
 * @param finished When a done job was acknowledged.
 * @param result What the handler of a done job returned, as the codec encoded it.
 * @param after The jobs that a blocked job still waits for.
 * @param afterGroup The group that it waits for.
 * @param onDead What it does if a job that it is after dies: {@code wait}, {@code run} or {@code die}.
 * @param results How the jobs ended that it is after, or was.
 * @param payloadBytes The payload's whole length, where {@code payload} is cut too.
 * @param fields All fields as the server gave them, also those that this library does not know.
 * @param codec The queue's, by which {@link #data} is decoded.
 */
public record JobInfo(
        String id,
        byte[] payload,
        State state,
        int priority,
        Instant due,
        Instant deadline,
        Duration ttr,
        int attempts,
        int maxAttempts,
        List<Duration> backoff,
        String label,
        Instant expires,
        String token,
        String reason,
        Instant failed,
        List<FailedAttempt> history,
        String group,
        byte[] next,
        Rule rule,
        String progress,
        Duration keep,
        int cost,
        String awaits,
        Map<String, byte[]> steps,
        Instant started,
        String client,
        Instant finished,
        byte[] result,
        List<String> after,
        String afterGroup,
        String onDead,
        List<JobResult> results,
        long payloadBytes,
        Map<String, Object> fields,
        Codec codec) {
    /** The kind that it was added with, or null. */
    public String kind() {
        Envelope envelope = Envelope.read(payload);
        return envelope == null ? null : envelope.kind();
    }

    /** The headers that it was added with. */
    public Map<String, String> headers() {
        Envelope envelope = Envelope.read(payload);
        return envelope == null ? Map.of() : envelope.headers();
    }

    /** What it was added with, decoded as {@link Job#data(Class)} is. */
    public <T> T data(Class<T> type) {
        return data((Type) type);
    }

    /** As {@link #data(Class)}, for a type with parameters. */
    public <T> T data(Type type) {
        return Envelope.data(codec, payload, Envelope.read(payload), type);
    }

    static JobInfo of(Map<String, Object> fields, Codec codec) {
        if (fields == null) {
            return null;
        }
        return new JobInfo(
                Reply.text(fields.get("id")),
                (byte[]) fields.get("payload"),
                State.of(fields.get("state")),
                (int) Reply.number(fields.get("priority")),
                Reply.instant(fields.get("due")),
                Reply.instant(fields.get("deadline")),
                Reply.duration(fields.get("ttr")),
                (int) Reply.number(fields.get("attempts")),
                (int) Reply.number(fields.get("max-attempts")),
                Reply.ladder(fields.get("backoff")),
                Reply.text(fields.get("label")),
                Reply.instant(fields.get("expires")),
                Reply.text(fields.get("token")),
                Reply.prose(fields.get("reason")),
                Reply.instant(fields.get("failed")),
                FailedAttempt.all(fields.get("history")),
                Reply.text(fields.get("group")),
                (byte[]) fields.get("next"),
                Rule.of(fields),
                Reply.prose(fields.get("progress")),
                Reply.duration(fields.get("keep")),
                fields.containsKey("cost") ? (int) Reply.number(fields.get("cost")) : 1,
                Reply.text(fields.get("awaits")),
                Reply.steps(fields.get("steps")),
                Reply.instant(fields.get("started")),
                Reply.prose(fields.get("client")),
                Reply.instant(fields.get("finished")),
                (byte[]) fields.get("result"),
                Reply.list(fields.get("after")).stream().map(Reply::text).toList(),
                Reply.text(fields.get("after-group")),
                Reply.text(fields.get("on-dead")),
                JobResult.all(fields.get("results"), codec),
                Reply.number(fields.get("payload-bytes")),
                fields,
                codec);
    }
}
