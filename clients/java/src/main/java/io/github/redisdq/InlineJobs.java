package io.github.redisdq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The jobs of an {@link InlineQueue}, and the few commands that handlers can tell from a server's. */
final class InlineJobs {
    private static final long LEASE_MS = 60_000;
    private static final long AWAIT_MS = 5; // after which a wait asks again

    private final Handlers handlers;
    private final Map<String, Entry> jobs = new LinkedHashMap<>();
    private List<Object> transaction; // the replies of an open transaction

    InlineJobs(Handlers handlers) {
        this.handlers = handlers;
    }

    private static final class Entry {
        final byte[] key;
        final byte[] id;
        final byte[] payload;
        final Map<String, byte[]> steps = new LinkedHashMap<>();
        List<String> after = List.of();
        List<Object> results = List.of();
        String awaits;
        JobOutcome outcome; // null: it has not ended
        byte[] value;
        boolean isRunning;

        Entry(byte[] key, byte[] id, byte[] payload) {
            this.key = key;
            this.id = id;
            this.payload = payload;
        }
    }

    Object run(byte[][] words) {
        String command = Bytes.text(words[0]);
        if (command.equals("DQ.AWAIT")) {
            return ended(words);
        }
        synchronized (this) {
            Object answer = answer(command, words);
            if (transaction != null && !command.equals("MULTI")) {
                transaction.add(answer);
            }
            return answer;
        }
    }

    private Object answer(String command, byte[][] words) {
        switch (command) {
            case "MULTI" -> transaction = new ArrayList<>();
            case "EXEC" -> {
                List<Object> answers = transaction;
                transaction = null;
                return answers;
            }
            case "CLIENT" -> {
                return 0L;
            }
            case "DQ.ADD" -> {
                return add(words);
            }
            case "DQ.MADD" -> {
                List<Object> ids = new ArrayList<>();
                for (int at = 0; at < Reply.count(words[2]); at++) {
                    ids.add(add(new byte[][] {words[0], words[1], words[3 + 2 * at], words[4 + 2 * at]}));
                }
                return ids;
            }
            case "DQ.SIGNAL" -> {
                return signal(Bytes.text(words[2]), Bytes.text(words[3]), words.length > 4 ? words[4] : Values.NOTHING);
            }
            case "DQ.DEL" -> {
                return jobs.remove(Bytes.text(words[2])) == null ? 0L : 1L;
            }
            case "DQ.GET" -> {
                return shown(jobs.get(Bytes.text(words[2])));
            }
            default -> {
                return new RefusedException(command + " needs a server: see DqServer");
            }
        }
        return Bytes.of("OK");
    }

    private Object add(byte[][] words) {
        String id = Bytes.text(words[2]);
        Entry there = jobs.get(id);
        if (there != null && there.outcome == null) {
            return null;
        }
        Entry entry = new Entry(words[1], words[2], words[3]);
        entry.after = after(words, 4);
        jobs.put(id, entry);
        goOn(entry);
        return entry.id;
    }

    /** The ids that a command names after its AFTER. A label may read AFTER, too. */
    private static List<String> after(byte[][] words, int from) {
        for (int at = from; at + 1 < words.length; at++) {
            if (Bytes.text(words[at]).equals("AFTER") && Bytes.text(words[at + 1]).matches("\\d+")) {
                return Arrays.stream(words, at + 2, at + 2 + Reply.count(words[at + 1])).map(Bytes::text).toList();
            }
        }
        return List.of();
    }

    private Object signal(String id, String name, byte[] value) {
        Entry entry = jobs.get(id);
        if (entry == null || entry.outcome != null) {
            return null;
        }
        boolean isNew = entry.steps.putIfAbsent(name, value) == null;
        goOn(entry);
        return isNew ? 1L : 0L;
    }

    private List<Object> ended(byte[][] words) {
        List<Object> found = new ArrayList<>();
        synchronized (this) {
            for (int at = 3; at < words.length; at++) {
                String id = Bytes.text(words[at]);
                if (!jobs.containsKey(id) || jobs.get(id).outcome != null) {
                    found.add(end(id));
                }
            }
        }
        if (found.isEmpty()) {
            Guard.call(() -> Thread.sleep(AWAIT_MS));
        }
        return found;
    }

    private Object end(String id) {
        Entry entry = jobs.get(id);
        JobOutcome outcome = entry == null ? JobOutcome.UNKNOWN : entry.outcome;
        return Arrays.asList(Bytes.of(id), Bytes.of(outcome.word()), entry == null ? null : entry.value);
    }

    private static List<Object> shown(Entry entry) {
        if (entry == null) {
            return null;
        }
        boolean isDone = entry.outcome == JobOutcome.DONE;
        String state = entry.outcome == null ? "delayed" : entry.outcome.word();
        List<Object> fields = new ArrayList<>(List.of(Bytes.of("id"), entry.id, Bytes.of("payload"), entry.payload));
        fields.addAll(List.of(Bytes.of("state"), Bytes.of(state)));
        fields.addAll(Arrays.asList(Bytes.of(isDone ? "result" : "reason"), entry.value));
        return fields;
    }

    // --- Handlers

    private boolean isWaiting(Entry entry) {
        boolean isAwaiting = entry.awaits != null && !entry.steps.containsKey(entry.awaits);
        return isAwaiting || entry.after.stream().map(jobs::get).anyMatch(each -> each != null && each.outcome == null);
    }

    /** Runs the job's handler until the job ends or has to wait. */
    private void goOn(Entry entry) {
        while (!entry.isRunning && entry.outcome == null && !isWaiting(entry)) {
            entry.results = entry.after.isEmpty() ? entry.results : entry.after.stream().map(this::end).toList();
            entry.after = List.of();
            entry.awaits = null;
            entry.isRunning = true; // so that jobs that it spawns do not start it again
            try {
                attempt(entry);
            } finally {
                entry.isRunning = false;
            }
        }
    }

    private void attempt(Entry entry) {
        Attempt attempt = new Attempt(entry);
        try {
            attempt.run();
        } catch (RuntimeException | Error error) {
            if (attempt.job.suspension == null) {
                end(entry, JobOutcome.DEAD, Bytes.of(Guard.text(error)));
                throw error;
            }
        }
        if (attempt.job.suspension != null) {
            suspend(entry, attempt.job.suspension);
        } else {
            end(entry, JobOutcome.DONE, attempt.job.result);
        }
    }

    private void end(Entry entry, JobOutcome outcome, byte[] value) {
        entry.outcome = outcome;
        entry.value = value;
        List.copyOf(jobs.values()).forEach(this::goOn);
    }

    private void suspend(Entry entry, Steps.End end) {
        for (Words each : end.before()) {
            byte[][] words = each.all();
            if (Bytes.text(words[0]).equals("DQ.STEP")) {
                entry.steps.put(Bytes.text(words[4]), words[5]);
            } else {
                Guard.call(() -> add(words)); // its error is in its result
            }
        }
        byte[][] nack = end.nack().all();
        entry.awaits = Bytes.text(nack[1]).equals("AWAIT") ? Bytes.text(nack[2]) : null;
        entry.after = after(nack, 0);
    }

    private final class Attempt implements Job.Context {
        private final Entry entry;
        private final Job job;

        Attempt(Entry entry) {
            this.entry = entry;
            List<Object> steps = new ArrayList<>();
            entry.steps.forEach((name, value) -> steps.addAll(List.of(Bytes.of(name), value)));
            long now = System.currentTimeMillis();
            List<Object> row =
                    Arrays.asList(entry.id, entry.payload, Bytes.of(1), 1L, now + LEASE_MS, now, entry.results, steps, List.of());
            job = new Job(entry.key, row, Codec.json(), this);
            job.handler = handlers.choose(job);
        }

        void run() {
            if (job.handler == null) {
                throw new DqException("no handler for jobs of kind " + job.kind());
            }
            try {
                Object result = job.handler.run(List.of(job));
                if (job.handler.size() == 1 && result != null) {
                    job.succeed(result);
                }
                job.encode();
            } catch (RuntimeException error) {
                throw error;
            } catch (Exception error) {
                throw new DqException("the handler failed: " + error, error);
            }
            if (job.failure != null) {
                throw new DqException("the handler failed: " + job.failure, job.failure);
            }
        }

        @Override
        public Object ask(Job job, Words command) {
            byte[][] words = command.all();
            if (Bytes.text(words[0]).equals("DQ.TOUCH")) {
                return 1L; // what it counts in rates, of which there are none without a server
            }
            if (!Bytes.text(words[0]).equals("DQ.STEP")) {
                throw new RefusedException(Bytes.text(words[0]) + " needs a server: see DqServer");
            }
            entry.steps.put(Bytes.text(words[4]), words[5]);
            return 1L;
        }

        @Override
        public void lose(Job job) {}

        @Override
        public void report(Job job) {}

        @Override
        public String childId(Job parent, String given, String like) {
            return given == null ? like : given;
        }

        @Override
        public Words adding(Job parent, String id, DqQueue.NewJob child) {
            return Adding.child(parent.rawKey, id, child, parent.queue(), Codec.json(), List.of());
        }
    }
}
