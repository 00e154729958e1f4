package io.github.redisdq.probe;

// Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

import com.fasterxml.jackson.databind.JsonNode;
import io.github.redisdq.JobOptions;

final class Said {
    private Said() {}

    static void say(JsonNode args, JobOptions options) {
        if (args.hasNonNull("priority")) {
            options.priority(args.get("priority").asInt());
        }
        if (args.hasNonNull("ttr")) {
            options.ttr(Calls.duration(args, "ttr"));
        }
        if (args.hasNonNull("attempts")) {
            options.attempts(args.get("attempts").asInt());
        }
        if (args.hasNonNull("ttl")) {
            options.ttl(Calls.duration(args, "ttl"));
        }
        if (args.hasNonNull("group")) {
            options.group(args.get("group").asText());
        }
        if (args.hasNonNull("keep")) {
            options.keep(Calls.duration(args, "keep"));
        }
        if (args.hasNonNull("cost")) {
            options.cost(args.get("cost").asInt());
        }
        if (args.hasNonNull("backoff")) {
            options.backoff(Calls.durations(args.get("backoff")));
        }
        if (args.hasNonNull("label")) {
            options.label(args.get("label").asText());
        }
    }
}
