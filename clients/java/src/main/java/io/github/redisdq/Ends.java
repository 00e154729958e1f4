package io.github.redisdq;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** The outcomes that the server is still to be told. */
class Ends {
    private static final int MOST_TOGETHER = 100; // ends in one command

    private Deque<Outcome> outcomes = new ArrayDeque<>();
    private final Set<Job> unanswered = new HashSet<>(); // the server has not answered yet

    synchronized void put(Outcome outcome) {
        unanswered.add(outcome.job);
        outcomes.addLast(outcome);
    }

    synchronized int pending() {
        return outcomes.size();
    }

    synchronized List<Job> unanswered() {
        return new ArrayList<>(unanswered);
    }

    synchronized boolean isUnanswered(Job job) {
        return unanswered.contains(job);
    }

    synchronized Deque<Outcome> take(int count) {
        Deque<Outcome> taken = outcomes;
        if (taken.size() <= count) {
            outcomes = new ArrayDeque<>();
            return taken;
        }
        Deque<Outcome> some = new ArrayDeque<>(count);
        while (some.size() < count) {
            some.addLast(taken.removeFirst());
        }
        return some;
    }

    /**
     * Queues outcomes again that have no reply: they are safe to send twice. What connections may have ended for is
     * left out. {@code error}: by which the connection was lost.
     */
    synchronized void putBack(Deque<Outcome> untold, Throwable error) {
        while (!untold.isEmpty()) {
            Outcome last = untold.removeLast();
            if (last.endsConnections(error)) {
                var said = new RefusedException("the connection ended each time it was sent");
                refused(last, said, last.cut(said));
            } else {
                outcomes.addFirst(last);
            }
        }
    }

    /** What no write took along yet, as an earlier reply is outstanding, up to so many bytes. It stays pending. */
    synchronized List<byte[][]> unsent(long mostBytes) {
        List<byte[][]> commands = new ArrayList<>();
        long left = mostBytes;
        for (Outcome each : outcomes) {
            List<byte[][]> these = new ArrayList<>(2);
            each.waitIfGivenBack();
            each.addTo(these);
            long size = these.stream().flatMap(Arrays::stream).mapToLong(word -> word.length).sum();
            if (size <= left) {
                left -= size;
                each.sending();
                commands.addAll(these);
            }
        }
        return commands;
    }

    private synchronized void forget(Job job) {
        unanswered.remove(job);
    }

    static List<byte[][]> commands(Deque<Outcome> told) {
        List<Outcome> all = new ArrayList<>(told);
        List<byte[][]> commands = new ArrayList<>();
        for (int from = 0, to; from < all.size(); from = to) {
            to = end(all, from);
            for (Outcome each : all.subList(from, to)) {
                each.sending();
            }
            all.get(from).addTo(commands, all.subList(from, to));
        }
        return commands;
    }

    /** Where those end that share a command with the first. */
    private static int end(List<Outcome> all, int from) {
        int to = from + 1;
        while (to < all.size() && to - from < MOST_TOGETHER && all.get(to).isLike(all.get(from))) {
            to++;
        }
        return to;
    }

    /**
     * Reads the replies; outcomes without one stay in {@code told}. Returns an error of the server that passes, or
     * null.
     */
    RefusedException hear(Wire wire, Deque<Outcome> told, Held held, Consumer<RefusedException> uncounted) {
        RefusedException trouble = null;
        List<Outcome> all = new ArrayList<>(told);
        for (int from = 0, to; from < all.size(); from = to) {
            to = end(all, from);
            Outcome first = all.get(from);
            List<Object> replies = wire.read(first.size());
            Object reply = first.answer(replies);
            if (first.size() > 1 && replies.get(0) instanceof RefusedException said) {
                uncounted.accept(said);
            }
            for (int at = from; at < to; at++) {
                told.removeFirst();
                boolean isShared = to - from > 1 && !(reply instanceof RefusedException);
                RefusedException said = hear(all.get(at), isShared ? Reply.list(reply).get(at - from) : reply, held);
                trouble = said == null ? trouble : said;
            }
        }
        return trouble;
    }

    private RefusedException hear(Outcome each, Object reply, Held held) {
        each.heard();
        if (!(reply instanceof RefusedException said)) {
            forget(each.job);
            if (each.answered(reply) == Outcome.Answer.LOST) {
                held.lost.accept(each.job);
            }
            if (each.mayBeDead(reply)) {
                held.died.accept(each.job);
            }
        } else if (each.isRefused(said)) {
            refused(each, said, each.weaken(said));
        } else {
            put(each);
            return said;
        }
        return null;
    }

    /** Handles an outcome that the server refuses for good: it is not sent again unchanged. */
    private void refused(Outcome outcome, RefusedException said, String part) {
        if (part == null) {
            forget(outcome.job);
            Guard.warn("the server refuses the end of " + outcome.job + " (" + said.getMessage() + "): it comes again when its lease ends");
            return;
        }
        String then = part.equals(Outcome.WAIT) ? "the attempt failed" : "sent again without it";
        Guard.warn("the server refuses " + part + " of " + outcome.job + " (" + said.getMessage() + "): " + then);
        put(outcome);
    }
}
