package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** The fetch commands of one connection. */
final class Fetches {
    /** A key of a queue, with its weight. */
    record Member(DqQueue queue, byte[] key, double weight) {}

    private record Drawn(byte[] key, double draw) {}

    private final List<Member> members;
    private final List<byte[]> keys;
    private final boolean isWeighted;
    private final Leases leases;
    private final Duration wait;
    private final Handler.Fill fill; // null: none
    private long since; // when the first of the calls began that had to give way while they waited for a batch; or 0

    Fetches(List<Member> members, boolean isWeighted, Leases leases, Duration wait, Handler.Fill fill) {
        this.members = members;
        this.keys = members.stream().map(Member::key).toList();
        this.isWeighted = isWeighted;
        this.leases = leases;
        this.wait = fill == null ? wait : wait.plus(fill.atMost()); // so that few end before their batch is full
        this.fill = fill;
    }

    List<Member> members() {
        return members;
    }

    Leases leases() {
        return leases;
    }

    /** How long a fetch waits at the server. */
    Duration longest() {
        return wait;
    }

    byte[][] command(int count, Duration wait, long now) {
        Words words = new Words("DQ.BPOP");
        order().forEach(words::add);
        words.add(Double.toString(wait.toMillis() / 1000.0)).add("COUNT").add(count);
        if (fill != null && count > 1) {
            long leftMs = Times.ms(fill.atMost()) - (since == 0 ? 0 : (now - since) / 1_000_000);
            words.add("FILL").add(Math.min(fill.jobs(), count)).add(Math.max(1, leftMs));
        }
        return words.add(leases.words()).add("WITHDUE").add("WITHRESULTS").add("WITHSTEPS").add("WITHTERMS").all();
    }

    /** A call has ended. If it neither got jobs nor lasted as long as it could, the next one goes on with its wait. */
    void fetched(boolean isOver, long began) {
        since = isOver ? 0 : since == 0 ? began : since;
    }

    /** Strict order is BPOP's own. With weights each queue comes first in its share of the fetches. */
    private List<byte[]> order() {
        if (!isWeighted || members.size() == 1) {
            return keys;
        }
        List<Drawn> draws = new ArrayList<>();
        for (Member each : members) {
            draws.add(new Drawn(each.key, Math.pow(ThreadLocalRandom.current().nextDouble(), 1 / each.weight)));
        }
        draws.sort(Comparator.comparingDouble(Drawn::draw).reversed());
        return draws.stream().map(Drawn::key).toList();
    }
}
