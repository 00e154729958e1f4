package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A job without a server: made for the unit test of a handler, or run by its handler until it ends.
 *
 * <pre>{@code
 * shop.close(TestJob.of(new Order(17)).attempt(3).job());
 * assertEquals(State.DONE, TestJob.of(new Order(17)).run(shop.charge()).state());
 * }</pre>
 *
 * {@link Job#step} runs what it is given, {@link Job#sleep} and {@link Job#waitSignal} end the attempt as always, and what
 * needs a server says so. What is not set is as of a job that was added without options.
 */
public final class TestJob {
    private static final int MOST = 100; // deliveries
    private static final String NEEDS_A_SERVER = " needs a server: see DqServer";

    private final Object data;
    private final JobOptions options = JobOptions.withId("1");
    private final List<Object> results = new ArrayList<>();
    private final Map<String, Object> signals = new HashMap<>();
    private String queue = "test";
    private Codec codec = Codec.json();
    private int attempt = 1;

    private TestJob(Object data) {
        this.data = data;
    }

    public static TestJob of(Object data) {
        return new TestJob(data);
    }

    public TestJob id(String id) {
        options.id(id);
        return this;
    }

    /** The job's kind; without one, it has that of the handler that is to run. */
    public TestJob kind(String kind) {
        options.kind(kind);
        return this;
    }

    public TestJob header(String name, String value) {
        options.header(name, value);
        return this;
    }

    /** The first attempt: 1, or a later one. */
    public TestJob attempt(int attempt) {
        this.attempt = attempt;
        return this;
    }

    /** How often the job may be delivered; 0: without limit. */
    public TestJob attempts(int attempts) {
        options.attempts(attempts);
        return this;
    }

    /** The job's own ladder. */
    public TestJob backoff(Duration... backoff) {
        options.backoff(backoff);
        return this;
    }

    /** How a job ended that this one is after. {@code value}: its result, or the reason. */
    public TestJob result(String id, JobOutcome outcome, Object value) {
        results.add(Arrays.asList(id, outcome, value));
        return this;
    }

    /** A signal that has come. */
    public TestJob signal(String name, Object value) {
        signals.put(name, value);
        return this;
    }

    public TestJob codec(Codec codec) {
        this.codec = codec;
        return this;
    }

    /** The name of its queue. */
    public TestJob queue(String name) {
        queue = name;
        return this;
    }

    /** The job, as it is delivered. */
    public Job job() {
        Desk desk = new Desk();
        signals.forEach((name, value) -> desk.steps.put(name, Values.encode(codec, value)));
        return delivered(options, desk, attempt);
    }

    private Job delivered(JobOptions options, Desk desk, int attempt) {
        Adding added = new Adding(new Adding.To(new Shards(null, queue, 0), codec, List.of()), data, options);
        List<Object> steps = new ArrayList<>();
        desk.steps.forEach((name, value) -> Collections.addAll(steps, Bytes.of(name), value));
        List<Object> rows = new ArrayList<>();
        for (Object each : results) {
            List<Object> row = Reply.list(each);
            Object value = row.get(1) == JobOutcome.DONE ? Values.encode(codec, row.get(2)) : Bytes.of(String.valueOf(row.get(2)));
            rows.add(Arrays.asList(Bytes.of((String) row.get(0)), Bytes.of(((JobOutcome) row.get(1)).word()), value));
        }
        long now = System.currentTimeMillis();
        List<Object> terms = Arrays.asList(Terms.USUAL_TTR_MS, options.attempts == null ? 0L : (long) options.attempts, options.backoff == null ? null : 1L);
        List<Object> row = Arrays.asList(
                Bytes.of(added.id()), added.payload(), Bytes.of("1"), (long) attempt, now + Terms.USUAL_TTR_MS, now, rows, steps, terms);
        return new Job(added.key(), row, codec, desk);
    }

    // --- Running

    /**
     * Runs the job's handler, one of these, until the job is done, dead, or waits for a signal.
     *
     * <p>After a failure it is tried again, as its ladder and limits say, but at once. So is a sleep over, and a wait for a
     * signal, if that has come or the wait has a timeout. A handler's own timeout does not hold.
     */
    public TestRun run(Handler<?>... handlers) {
        Handlers all = new Handlers(List.of(handlers));
        JobOptions said = options.kind() == null && handlers.length == 1 ? options.copy().kind(handlers[0].kind()) : options;
        Desk desk = new Desk();
        List<Job> jobs = new ArrayList<>();
        State state = null;
        byte[] result = null;
        String reason = null;
        int next = attempt;
        while (state == null && jobs.size() < MOST) {
            Job job = delivered(said, desk, next);
            jobs.add(job);
            job.handler = all.choose(job);
            if (job.handler == null) {
                throw new DqException("there is no handler for jobs of kind " + job.kind());
            }
            Outcome outcome = ended(job);
            desk.complain();
            next += job.isSuspended() || outcome.isSnooze() ? 0 : 1;
            if (job.isSuspended()) {
                state = desk.suspend(job.suspension) ? null : State.BLOCKED;
                continue;
            }
            state = outcome.isDone() ? State.DONE : outcome.isDead() ? State.DEAD : null;
            result = job.result;
            reason = outcome.reason();
            if (state == null) {
                desk.waited(outcome.delay() == null ? ownStep(job.attempt()) : outcome.delay());
            }
        }
        return new TestRun(state == null ? State.DELAYED : state, result, reason, next - 1, desk.waits, jobs);
    }

    private static Outcome ended(Job job) {
        Throwable error = Guard.call(() -> {
            Object result = job.handler.run(List.of(job));
            if (job.handler.size() == 1 && result != null) {
                job.succeed(result);
            }
        });
        return job.isSuspended() ? Outcome.suspended(job) : Outcome.ended(job, Handling.whatFailed(job, error));
    }

    /** The step of the job's own ladder; null: it has none, and the server knows. */
    private Duration ownStep(int attempt) {
        List<Duration> steps = options.backoff;
        return steps == null ? null : steps.isEmpty() ? Duration.ZERO : steps.get(Math.min(attempt, steps.size()) - 1);
    }

    /** Takes the place of the link of its deliveries. */
    private final class Desk implements Job.Context {
        final Map<String, byte[]> steps = new LinkedHashMap<>();
        final List<Duration> waits = new ArrayList<>();
        private DqException lacking;

        private DqException lack(String what) {
            lacking = new DqException(what + NEEDS_A_SERVER);
            return lacking;
        }

        void complain() {
            if (lacking != null) {
                throw lacking;
            }
        }

        void waited(Duration wait) {
            if (!Duration.ZERO.equals(wait)) {
                waits.add(wait);
            }
        }

        /** Has the job wait. False: nothing ends its wait. */
        boolean suspend(Steps.End end) {
            end.before().forEach(this::keep);
            byte[][] nack = end.nack().all(); // SILENT, and what it waits for
            String name = Bytes.text(nack[2]);
            switch (Bytes.text(nack[1])) {
                case "DELAY" -> waited(Duration.ofMillis(Long.parseLong(name)));
                case "AWAIT" -> {
                    if (signals.containsKey(name)) {
                        steps.put(name, Values.encode(codec, signals.get(name)));
                    } else if (nack.length > 3) {
                        waited(Duration.ofMillis(Long.parseLong(Bytes.text(nack[4]))));
                    } else {
                        return false;
                    }
                }
                default -> throw lack("job.waitFor");
            }
            return true;
        }

        private boolean keep(Words command) {
            byte[][] words = command.all();
            boolean isStep = Bytes.text(words[0]).equals("DQ.STEP");
            if (isStep) {
                steps.put(Bytes.text(words[4]), words[5]);
            }
            return isStep || Bytes.text(words[0]).equals("DQ.TOUCH"); // a cost: here are no rates
        }

        @Override
        public Object ask(Job job, Words command) {
            if (!keep(command)) {
                throw lack("job.once");
            }
            return 1L;
        }

        @Override
        public void lose(Job job) {}

        @Override
        public void report(Job job) {}

        @Override
        public String childId(Job parent, String given, String like) {
            throw lack("job.spawn");
        }

        @Override
        public Words adding(Job parent, String id, QueueCommands.NewJob child) {
            throw lack("job.spawn");
        }
    }
}
