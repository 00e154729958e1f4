package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * The jobs that have died, for the hooks that hear of them: those of which an answer told, and those that are found at the
 * server, as time or another job ended them. One thread reads each of them just before it calls the hooks, which hold up
 * nothing else.
 */
final class Deaths {
    static final int MOST = 1000; // that wait for the hooks
    private static final int PAGE = 100;
    private static final long SET_BACK_MS = 1000; // from so much on a server's clock that is behind was set back

    /** Reasons of the server. All others were said in a NACK, whose sender heard of the death. */
    private static final Pattern BY_TIME = Pattern.compile("lease ended|after .*: (dead|deleted|expired)", Pattern.DOTALL);

    /** {@code isAll}: it was found whatever it died of. */
    private record Found(long at, boolean isAll) {}

    /** The first of the ids that is dead is the job. {@code isFound}: it counts only if no answer told of it. */
    private record Death(Place place, List<String> ids, boolean isFound) {}

    /** A key, and since when deaths are looked for there, by the server's clock. */
    static final class Place {
        final DqQueue queue;
        final byte[] key;
        final Map<String, Found> seen = new HashMap<>(); // deaths since then
        final Map<String, Long> told = new LinkedHashMap<>() {
            private static final long serialVersionUID = 1;

            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
                return size() > 10 * MOST;
            }
        };
        long fromMs = -1; // not known yet
        long beganMs; // when the last look began, by the server's clock
        long beganNs; // and by ours

        Place(DqQueue queue, byte[] key) {
            this.queue = queue;
            this.key = key;
        }

        Object ask(Words command) {
            Object reply = queue.connector().call(List.<byte[][]>of(command.all()), null).get(0);
            if (reply instanceof RefusedException said) {
                throw said;
            }
            return reply;
        }

        /** Since when a look counts that begins now by the server's clock, and by ours; at first since the worker started. */
        void lookAt(long nowMs, long now, long begunNs) {
            if (fromMs < 0) {
                fromMs = Math.max(0, nowMs - (now - begunNs) / 1_000_000);
            } else {
                long behindMs = beganMs + (now - beganNs) / 1_000_000 - nowMs;
                if (behindMs > SET_BACK_MS || nowMs < fromMs) { // after a failover: by this clock, the last look began earlier
                    fromMs = Math.max(0, Math.min(fromMs, beganMs - Math.max(0, behindMs)));
                }
            }
            beganMs = nowMs;
            beganNs = now;
        }

        /** Forgets what is not looked for again. */
        void lookFrom(long ms) {
            fromMs = Math.max(fromMs, ms);
            seen.values().removeIf(each -> each.at < fromMs);
        }
    }

    private final List<Hooks> hooks;
    private final Watch watch;
    private final long everyNs;
    private final List<Place> places = new ArrayList<>();
    private final Deque<Death> waiting = new ArrayDeque<>();
    private long begun; // when the worker started; 0: not yet
    private int lost; // deaths of which an answer told when there was no room: the next look takes all
    private boolean isEnding;
    private volatile boolean hasEnded;
    private boolean mayLook = true;
    private long lookAt = System.nanoTime();

    /** {@code every}: how often to look, and how much earlier each time, as a busy server finds some deaths late. */
    Deaths(List<Hooks> hooks, List<DqQueue> queues, Duration every, Watch watch) {
        this.hooks = hooks.stream().filter(Deaths::hears).toList();
        this.watch = watch;
        everyNs = Times.ms(every) * 1_000_000;
        queues.forEach(queue -> queue.keys().forEach(key -> places.add(new Place(queue, key))));
    }

    private static boolean hears(Hooks hooks) {
        try {
            return hooks.getClass().getMethod("dead", String.class, JobInfo.class).getDeclaringClass() != Hooks.class;
        } catch (NoSuchMethodException never) {
            throw new AssertionError(never);
        }
    }

    boolean areHeard() {
        return !hooks.isEmpty();
    }

    // --- What other threads say

    /** An answer said that the job is dead. An occurrence of a recurring one is a dead job of its own. */
    void answered(DqQueue queue, Job job) {
        if (!areHeard()) {
            return;
        }
        List<String> ids = List.of(job.id() + "@" + job.due().toEpochMilli(), job.id());
        for (Place each : places) {
            if (each.queue == queue && Arrays.equals(each.key, job.rawKey) && !put(new Death(each, ids, false))) {
                lose(1);
            }
        }
    }

    private synchronized void lose(int count) {
        lost += count;
    }

    /** False: there is no room. */
    private synchronized boolean put(Death death) {
        if (waiting.size() >= MOST) {
            return false;
        }
        waiting.add(death);
        notifyAll();
        return true;
    }

    /** The worker has stopped: tells what waits by that time, or until a second stop. The rest is left behind. */
    void end(long by) {
        synchronized (this) {
            isEnding = true;
            notifyAll();
        }
        Object order = areHeard() ? Watch.NEWS : null;
        while (!hasEnded && order != null && order != Watch.STOP) {
            order = watch.order(by);
        }
        int left = left();
        if (areHeard() && !hasEnded) {
            hasEnded = true;
            Guard.warn("stopped without the hook dead: it has not ended, and is called no more; deaths that are left: " + left);
        } else if (left > 0) {
            Guard.warn("stopped before the hook dead was called; deaths that are left: " + left);
        }
    }

    private synchronized int left() {
        return waiting.size() + lost;
    }

    // --- The thread of the hooks

    void work() {
        begun = System.nanoTime();
        for (int failures = 0; !isOver(); ) {
            Throwable error = Guard.call(this::step);
            failures = error instanceof DqException ? failures + 1 : 0;
            if (failures > 0) { // the links say what is wrong
                long ms = Trouble.pause(failures).toMillis();
                Guard.call(() -> Thread.sleep(ms));
            }
        }
        hasEnded = true;
        watch.tell(Watch.NEWS);
    }

    private synchronized boolean isOver() {
        return hasEnded || isEnding && waiting.isEmpty();
    }

    private void step() throws InterruptedException {
        if (mayLook && hasRoom() && lookAt - System.nanoTime() <= 0) {
            look();
        }
        tellOne(next());
    }

    private synchronized boolean hasRoom() {
        return !isEnding && waiting.size() + PAGE <= MOST;
    }

    /** Waits for the next death until it is time to look; null: there is none. */
    private synchronized Death next() throws InterruptedException {
        long until = mayLook ? lookAt : System.nanoTime() + everyNs;
        for (long left = until - System.nanoTime(); waiting.isEmpty() && !isEnding && left > 0; left = until - System.nanoTime()) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return waiting.peek();
    }

    private void tellOne(Death death) {
        if (death == null) {
            return;
        }
        Throwable error = Guard.call(() -> tell(death));
        if (error instanceof DqException passing && !isForGood(passing)) {
            throw passing;
        }
        boolean isOff = error instanceof RefusedException said && watch.isForbidden(said, "DQ.GET", "the hook dead is not called");
        if (error != null && !isOff) {
            Guard.warn("the hook dead does not hear of job " + death.ids.get(death.ids.size() - 1) + ": " + Guard.text(error));
        }
        synchronized (this) {
            waiting.poll();
        }
    }

    private boolean isForGood(DqException error) {
        return error instanceof RefusedException said && (said.begins("NOPERM") || Trouble.isRefusal(said));
    }

    private void tell(Death death) {
        for (String id : death.ids) {
            Map<String, Object> fields = Reply.map(death.place.ask(new Words("DQ.GET").add(death.place.key).add(id)));
            if (fields != null && State.of(fields.get("state")) == State.DEAD) {
                tell(death, JobInfo.of(fields, death.place.queue.codec()));
                return;
            }
        }
    }

    private void tell(Death death, JobInfo job) {
        long at = job.failed() == null ? 0 : job.failed().toEpochMilli();
        boolean isTold = Long.valueOf(at).equals(death.place.told.get(job.id()));
        boolean isAnothers = death.isFound && (job.reason() == null || !BY_TIME.matcher(job.reason()).matches());
        if (!isTold && !isAnothers) {
            death.place.told.put(job.id(), at);
            hooks.forEach(each -> Guard.hook("dead", each, () -> each.dead(death.place.queue.name(), job)));
        }
    }

    /** For tests: tells, in the caller's thread, of all that have died since it was called first. */
    void drain() {
        if (areHeard()) {
            begun = begun == 0 ? System.nanoTime() : begun;
            boolean isAll = false;
            while (!isAll) {
                isAll = look();
                for (Death death = waiting.peek(); death != null; death = waiting.peek()) {
                    tellOne(death);
                }
            }
        }
    }

    // --- Deaths that are found

    /** Learns the server's time. */
    private long locate(Place place, Map<Object, Long> times) {
        Object there = place.queue.connector().place(place.key);
        long now = times.computeIfAbsent(there, it -> serverMs(place));
        place.lookAt(now, System.nanoTime(), begun);
        return now;
    }

    private long serverMs(Place place) {
        List<byte[][]> asked = List.of(new Words("DQ.CLOCK").add("GET").all(), new Words("TIME").all());
        List<Object> replies = place.queue.connector().callAt(place.key, asked);
        if (replies.get(0) instanceof Long ofTests) {
            return ofTests;
        }
        if (replies.get(1) instanceof RefusedException said) {
            turnOff(said, "TIME");
        }
        List<Object> time = Reply.list(replies.get(1));
        return mayLook ? Long.parseLong(Reply.text(time.get(0))) * 1000 + Long.parseLong(Reply.text(time.get(1))) / 1000 : 0;
    }

    /** Looks no longer, if the server forbids it; throws what passes. */
    private void turnOff(RefusedException said, String command) {
        mayLook = !watch.isForbidden(said, command, "the hook dead does not hear of jobs that died with their lease");
        if (mayLook) {
            throw said;
        }
    }

    /** Finds deaths, as far as there is room. Whether these are all. */
    private boolean look() {
        int before = takeLost();
        boolean isAll = true;
        Map<Object, Long> times = new HashMap<>();
        try {
            for (Place each : places) {
                isAll = isAll && look(each, before > 0, times);
            }
        } catch (DqException error) {
            isAll = false;
            if (!(error instanceof RefusedException said)) {
                throw error;
            }
            turnOff(said, "DQ.PEEK");
            isAll = true;
        } finally {
            if (!isAll) {
                lose(before);
            }
        }
        if (isAll) {
            lookAt = System.nanoTime() + everyNs;
        }
        return isAll;
    }

    private synchronized int takeLost() {
        int before = lost;
        lost = 0;
        return before;
    }

    private boolean look(Place place, boolean areLost, Map<Object, Long> times) {
        long now = mayLook ? locate(place, times) : 0;
        while (mayLook) {
            int count = PAGE + place.seen.size();
            Words peek = new Words("DQ.PEEK").add(place.key).add("DEAD").value("FROM", place.fromMs);
            List<Object> rows = Reply.list(place.ask(peek.value("COUNT", count).value("PREFIX", 0)));
            long last = 0;
            for (Object each : rows) {
                List<Object> row = Reply.list(each);
                String id = Reply.text(row.get(0));
                last = Reply.number(row.get(2));
                Found before = place.seen.get(id);
                if (before == null || before.at != last || areLost && !before.isAll) {
                    if (!put(new Death(place, List.of(id), !areLost))) {
                        return false;
                    }
                    place.seen.put(id, new Found(last, areLost));
                }
            }
            if (rows.size() < count) {
                place.lookFrom(now - everyNs / 1_000_000);
                return true;
            }
            if (place.seen.size() > MOST) {
                place.lookFrom(last);
            }
        }
        return true;
    }
}
