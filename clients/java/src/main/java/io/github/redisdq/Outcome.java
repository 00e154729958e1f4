package io.github.redisdq;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;

/** What the server is still to be told of a delivery that ended: a command, then, by its answer, another or a verdict. */
final class Outcome {
    private static final Duration SHORTEST_DELAY = Duration.ofMillis(100); // no handler can come back faster than that
    private static final Duration UNKNOWN_KIND_DELAY = Duration.ofSeconds(5);
    private static final int REASON_BYTES = 1024;

    enum Verdict {
        OPEN,
        SETTLED,
        LOST
    }

    final Job job;
    byte[][] command;
    private Function<Object, Object> next; // by the answer a verdict, or the words of the next command

    private Outcome(Job job, Words command, Function<Object, Object> next) {
        this.job = job;
        this.command = command.all();
        this.next = next;
    }

    /** Says what that answer means; with OPEN, {@code command} is the next one. */
    Verdict answered(Object reply) {
        Object then = next.apply(reply);
        if (then instanceof Words following) {
            command = following.all();
            next = Outcome::ofNack;
            return Verdict.OPEN;
        }
        return (Verdict) then;
    }

    private static Object ofNack(Object reply) {
        return reply == null ? Verdict.LOST : Verdict.SETTLED;
    }

    static Outcome done(Job job) {
        Words ack = new Words("DQ.ACK").add(job.rawKey).add("WITHTOKENS").add(job.rawId).add(job.rawToken);
        return new Outcome(job, ack, reply -> Reply.number(reply) == 0 ? Verdict.LOST : Verdict.SETTLED);
    }

    private static Words nack(Job job) {
        return new Words("DQ.NACK").add(job.rawKey).add(job.rawId).add("TOKEN").add(job.rawToken);
    }

    private static Outcome nacked(Job job, Words nack) {
        return new Outcome(job, nack, Outcome::ofNack);
    }

    /** Given back, as if it had not been delivered. */
    static Outcome returned(Job job) {
        return nacked(job, nack(job).add("SILENT"));
    }

    /** Given back for a worker that knows its kind, a little later. */
    static Outcome unknown(Job job) {
        long delay = (long) (UNKNOWN_KIND_DELAY.toMillis() * (1 + ThreadLocalRandom.current().nextDouble()));
        return nacked(job, nack(job).add("SILENT").value("DELAY", Duration.ofMillis(delay)));
    }

    /** What follows from how its handler ended. */
    static Outcome ended(Job job, Throwable error) {
        if (error == null) {
            return done(job);
        }
        if (error instanceof Say.GiveUp) {
            return nacked(job, nack(job).add("FATAL").add("REASON").add(reason(error)));
        }
        if (error instanceof Say.Snooze snooze) {
            Words words = nack(job).add("SILENT").value("DELAY", atLeast(snooze.delay));
            return nacked(job, words.value("REASON", snooze.getMessage()));
        }
        if (error instanceof Say.Cancelled || job.told() == Told.STOPPING && !(error instanceof Say)) {
            return returned(job); // whatever it threw: it was told to end
        }
        return failed(job, error);
    }

    /** Asks first: whether the job has a ladder and a limit of its own only its queue knows. */
    private static Outcome failed(Job job, Throwable error) {
        Words get = new Words("DQ.GET").add(job.rawKey).add(job.rawId);
        return new Outcome(job, get, reply -> {
            Map<String, Object> fields = Reply.map(reply);
            boolean isOurs = fields != null && fields.get("token") instanceof byte[] token && Arrays.equals(token, job.rawToken);
            return isOurs ? afterFailure(job, error, fields) : Verdict.LOST;
        });
    }

    private static Words afterFailure(Job job, Throwable error, Map<String, Object> fields) {
        Handler<?> handler = job.handler;
        Words words = nack(job);
        if (Reply.number(fields.get("max-attempts")) == 0 && 0 < handler.attempts() && handler.attempts() <= job.attempt()) {
            words.add("FATAL");
        } else if (error instanceof Say.Retry retry) {
            words.value("DELAY", atLeast(retry.delay));
        } else if (Reply.list(fields.get("backoff")).isEmpty()) {
            words.value("DELAY", atLeast(handler.delay(job.attempt())));
        }
        return words.add("REASON").add(reason(error));
    }

    private static Duration atLeast(Duration delay) {
        return Times.max(delay, SHORTEST_DELAY);
    }

    /** The error's type and message; of what a handler says on purpose the reason alone. */
    static byte[] reason(Throwable error) {
        String name = error.getClass().getSimpleName();
        String message = error.getMessage();
        String text = message == null ? name : error instanceof Say ? message : name + ": " + message;
        byte[] raw = text.getBytes(StandardCharsets.UTF_8);
        int size = Math.min(raw.length, REASON_BYTES);
        while (size < raw.length && size > 0 && (raw[size] & 0xC0) == 0x80) {
            size--; // not within a character
        }
        return Arrays.copyOf(raw, size);
    }

    // --- Heartbeats, and what is given back in the end: one command for each queue

    static byte[][] forAll(String command, List<Job> jobs, Words options) {
        Words words = new Words(command).add(jobs.get(0).rawKey).add("IDS").add(jobs.size());
        jobs.forEach(job -> words.add(job.rawId).add(job.rawToken));
        return words.add(options).all();
    }
}
