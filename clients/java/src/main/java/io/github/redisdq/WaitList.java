package io.github.redisdq;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** Who waits for which jobs of a queue, and for which of these the server has been asked. */
final class WaitList {
    private final Map<String, List<CompletableFuture<JobResult>>> wanted = new LinkedHashMap<>();
    private Set<String> asked = Set.of();
    private boolean isClosed;

    synchronized CompletableFuture<JobResult> add(String id) {
        CompletableFuture<JobResult> future = new CompletableFuture<>();
        if (isClosed) {
            future.completeExceptionally(new DqException("the queue was closed"));
            return future;
        }
        wanted.computeIfAbsent(id, it -> new ArrayList<>()).add(future);
        notifyAll();
        return future;
    }

    /** Removes one wait. */
    synchronized void remove(String id, CompletableFuture<JobResult> future) {
        wanted.computeIfPresent(id, (it, all) -> all.remove(future) && all.isEmpty() ? null : all);
    }

    /** The ids to ask the server for, as soon as there are any; none after {@code idleMs}, or if the list is closed. */
    synchronized List<String> next(long idleMs) throws InterruptedException {
        long end = System.nanoTime() + idleMs * 1_000_000;
        for (long left = idleMs; wanted.isEmpty() && !isClosed && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
        asked = isClosed ? Set.of() : new HashSet<>(wanted.keySet());
        notifyAll();
        return List.copyOf(asked);
    }

    synchronized boolean isEmpty() {
        return wanted.isEmpty();
    }

    /** Waits until the server has been asked for some jobs but lacks others: true; false if the list is closed. */
    synchronized boolean awaitMissing() throws InterruptedException {
        while (!isClosed && !isMissing()) {
            wait();
        }
        return !isClosed;
    }

    boolean isMissing() {
        return !asked.isEmpty() && !asked.containsAll(wanted.keySet());
    }

    /** Waits for a moment, or until something changes. */
    synchronized void pause(long ms) throws InterruptedException {
        if (isMissing() && !isClosed) {
            wait(ms);
        }
    }

    /** Records that the connection was lost: nothing is asked for any longer. */
    synchronized void lost() {
        asked = Set.of();
    }

    void answered(List<JobResult> ended) {
        Map<JobResult, List<CompletableFuture<JobResult>>> told = new LinkedHashMap<>();
        synchronized (this) {
            asked = Set.of();
            ended.forEach(each -> told.put(each, wanted.getOrDefault(each.id(), List.of())));
            ended.forEach(each -> wanted.remove(each.id()));
        }
        told.forEach((result, all) -> all.forEach(future -> future.complete(result)));
    }

    void fail(Throwable error) {
        List<CompletableFuture<JobResult>> told = new ArrayList<>();
        synchronized (this) {
            asked = Set.of();
            wanted.values().forEach(told::addAll);
            wanted.clear();
        }
        told.forEach(future -> future.completeExceptionally(error));
    }

    void close() {
        synchronized (this) {
            isClosed = true;
            notifyAll();
        }
        fail(new DqException("the queue was closed"));
    }
}
