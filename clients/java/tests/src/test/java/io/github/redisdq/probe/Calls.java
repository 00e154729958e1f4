package io.github.redisdq.probe;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Explanation;
import io.github.redisdq.FailedAttempt;
import io.github.redisdq.GroupSettings;
import io.github.redisdq.GroupStats;
import io.github.redisdq.Inside;
import io.github.redisdq.JobInfo;
import io.github.redisdq.JobOptions;
import io.github.redisdq.JobOptions.IfExists;
import io.github.redisdq.NackOptions;
import io.github.redisdq.NewRule;
import io.github.redisdq.Page;
import io.github.redisdq.QueueGroup;
import io.github.redisdq.RescheduleOptions;
import io.github.redisdq.Reserved;
import io.github.redisdq.RulesOptions;
import io.github.redisdq.ScanOptions;
import io.github.redisdq.Settings;
import io.github.redisdq.State;
import io.github.redisdq.Stats;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/** The methods of a queue, by the names of the commands. */
final class Calls {
    private Calls() {}

    static Duration duration(JsonNode args, String name) {
        return args.hasNonNull(name) ? Duration.ofMillis(args.get(name).asLong()) : null;
    }

    static Duration[] durations(JsonNode steps) {
        List<Duration> all = new ArrayList<>();
        steps.forEach(ms -> all.add(Duration.ofMillis(ms.asLong())));
        return all.toArray(Duration[]::new);
    }

    private static Instant instant(JsonNode args, String name) {
        return args.hasNonNull(name) ? Instant.ofEpochMilli(args.get(name).asLong()) : null;
    }

    private static Object data(JsonNode args) {
        JsonNode payload = args.path("payload");
        try {
            if (payload.isObject()) {
                return payload.get("base64").binaryValue();
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return payload.isTextual() ? payload.asText().getBytes(StandardCharsets.UTF_8) : args.get("data");
    }

    static JobOptions options(JsonNode args) {
        JobOptions options = JobOptions.withId(args.path("id").asText(null));
        options.delay(duration(args, "delay")).at(instant(args, "at")).kind(args.path("kind").asText(null));
        options.afterGroup(args.path("after_group").asText(null));
        Said.say(args, options);
        if (args.hasNonNull("after")) {
            options.after(each(args.get("after")));
        }
        if (args.hasNonNull("on_dead")) {
            options.onDead(JobOptions.OnDead.valueOf(args.get("on_dead").asText().toUpperCase(Locale.ROOT)));
        }
        args.path("headers").fields().forEachRemaining(each -> options.header(each.getKey(), each.getValue().asText()));
        return options.ifExists(switch (args.path("if_exists").asText("")) {
            case "replace" -> IfExists.REPLACE;
            case "only-replace" -> IfExists.ONLY_REPLACE;
            case "next" -> IfExists.RUN_AGAIN;
            default -> IfExists.REFUSE;
        });
    }

    private static Object rules(DqQueue queue, JsonNode args) {
        Map<String, NewRule> rules = new LinkedHashMap<>();
        args.get("rules").fields().forEachRemaining(each -> {
            JsonNode said = each.getValue();
            JobOptions options = options(said).ifExists(IfExists.REFUSE).tz(said.path("tz").asText(null));
            rules.put(each.getKey(), said.hasNonNull("cron")
                    ? NewRule.cron(said.get("cron").asText(), data(said), options)
                    : NewRule.every(duration(said, "every"), data(said), options));
        });
        RulesOptions options = new RulesOptions();
        if (args.path("prune").asBoolean()) {
            options.prune();
        }
        if (args.path("allow_empty").asBoolean()) {
            options.allowEmpty();
        }
        if (args.path("dry_run").asBoolean()) {
            options.dryRun();
        }
        try {
            return queue.rules(Inside.text(args.get("program").get("base64").binaryValue()), rules, options);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static JobOptions rule(JsonNode args) {
        JobOptions options = options(args).tz(args.path("tz").asText(null)).first(instant(args, "first")).until(instant(args, "until"));
        if (args.hasNonNull("times")) {
            options.times(args.get("times").asInt());
        }
        return options.grace(duration(args, "grace")).jitter(duration(args, "jitter"));
    }

    private static NackOptions nack(JsonNode args) {
        NackOptions options = switch (args.path("mode").asText("fail")) {
            case "silent" -> NackOptions.silent();
            case "fatal" -> NackOptions.fatal();
            default -> NackOptions.fail();
        };
        return options.delay(duration(args, "delay")).reason(args.path("reason").asText(null));
    }

    private static String[] ids(JsonNode args) {
        return each(args.get("ids"));
    }

    private static String[] each(JsonNode ids) {
        List<String> all = new ArrayList<>();
        ids.forEach(id -> all.add(id.asText()));
        return all.toArray(String[]::new);
    }

    private static Map<String, String> tokens(JsonNode args) {
        Map<String, String> tokens = new LinkedHashMap<>();
        args.get("tokens").fields().forEachRemaining(each -> tokens.put(each.getKey(), each.getValue().asText()));
        return tokens;
    }

    private static State state(JsonNode args) {
        return args.hasNonNull("state") ? State.valueOf(args.get("state").asText().toUpperCase(Locale.ROOT)) : null;
    }

    private static Object text(State state) {
        return state == null ? null : state.name().toLowerCase(Locale.ROOT);
    }

    private static Object ms(Instant instant) {
        return instant == null ? null : instant.toEpochMilli();
    }

    private static Map<String, Object> popped(Reserved job) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("id", job.id());
        out.put("payload", job.payload());
        out.put("token", job.token());
        out.put("attempt", job.attempt());
        out.put("deadline", ms(job.deadline()));
        out.put("due", ms(job.due()));
        out.put("queue", job.queue());
        return out;
    }

    static Object call(DqQueue queue, JsonNode order) throws InterruptedException {
        JsonNode args = order.path("args");
        String id = args.path("id").asText(null);
        String token = args.path("token").asText(null);
        Duration ttr = duration(args, "ttr");
        return switch (order.get("method").asText()) {
            case "add" -> add(queue, args);
            case "rules" -> rules(queue, args);
            case "every" -> queue.every(duration(args, "interval"), data(args), rule(args));
            case "cron" -> queue.cron(args.get("expression").asText(), data(args), rule(args));
            case "delete" -> args.path("unreserved").asBoolean() ? queue.deleteUnreserved(ids(args)) : queue.delete(ids(args));
            case "pop" -> pop(queue, args);
            case "bpop" -> queue.bpop(duration(args, "timeout"), args.path("count").asInt(1), ttr).stream()
                    .map(Calls::popped).toList();
            case "ack" -> queue.ack(id, token);
            case "nack" -> text(queue.nack(id, token, nack(args)));
            case "nack_many" -> {
                Map<String, Object> out = new LinkedHashMap<>();
                queue.nackMany(tokens(args), nack(args)).forEach((each, state) -> out.put(each, text(state)));
                yield out;
            }
            case "touch" -> ms(queue.touch(id, token, ttr));
            case "touch_many" -> {
                Map<String, Object> out = new LinkedHashMap<>();
                queue.touchMany(tokens(args), ttr).forEach((each, end) -> out.put(each, ms(end)));
                yield out;
            }
            case "reschedule" -> args.hasNonNull("at")
                    ? queue.reschedule(instant(args, "at"), ids(args))
                    : args.hasNonNull("delay") ? queue.reschedule(duration(args, "delay"), ids(args))
                    : queue.reschedule(new RescheduleOptions().priority(args.get("priority").asInt()), ids(args));
            case "kick" -> queue.kick(ids(args));
            case "kick_oldest" -> queue.kickOldest(args.get("count").asInt());
            case "result" -> queue.result(id, JsonNode.class);
            case "wait" -> queue.wait(id, JsonNode.class, duration(args, "timeout"));
            case "add_and_wait" -> queue.addAndWait(data(args), options(args), JsonNode.class, duration(args, "timeout"));
            case "cancel" -> queue.cancel(id);
            case "signal" -> queue.signal(id, args.get("name").asText(), args.get("value"));
            case "chain" -> queue.chain(each(args.get("jobs"), data -> new DqQueue.NewJob(data)));
            case "join" -> queue.join(
                    each(args.get("jobs"), job -> new DqQueue.NewJob(data(job), options(job))),
                    new DqQueue.NewJob(data(args.get("then")), options(args.get("then"))));
            case "add_many" -> queue.addMany(each(args.get("jobs"), job -> new DqQueue.NewJob(data(job), options(job))));
            default -> look(queue, order.get("method").asText(), args);
        };
    }

    private static List<DqQueue.NewJob> each(JsonNode jobs, Function<JsonNode, DqQueue.NewJob> made) {
        List<DqQueue.NewJob> all = new ArrayList<>();
        jobs.forEach(each -> all.add(made.apply(each)));
        return all;
    }

    private static Object add(DqQueue queue, JsonNode args) {
        if (!args.hasNonNull("repeat")) {
            return queue.add(data(args), options(args));
        }
        List<DqQueue.NewJob> jobs = new ArrayList<>();
        for (int n = 0; n < args.get("repeat").asInt(); n++) {
            jobs.add(new DqQueue.NewJob(data(args), options(args).id(args.get("id").asText() + ":" + n)));
        }
        return queue.addMany(jobs);
    }

    private static Object pop(DqQueue queue, JsonNode args) {
        if (args.hasNonNull("id")) {
            Reserved found = queue.popId(args.get("id").asText(), duration(args, "ttr"));
            return found == null ? List.of() : List.of(popped(found));
        }
        int count = args.path("count").asInt(1);
        List<Reserved> found = args.path("noack").asBoolean() ? queue.popAndForget(count) : queue.pop(count, duration(args, "ttr"));
        return found.stream().map(Calls::popped).toList();
    }

    private static Object look(DqQueue queue, String method, JsonNode args) {
        Integer count = args.hasNonNull("count") ? args.get("count").asInt() : null;
        Integer prefix = args.hasNonNull("prefix") ? args.get("prefix").asInt() : null;
        switch (method) {
            case "get":
                return info(queue.get(args.get("id").asText(), prefix));
            case "peek":
                return queue.peek(state(args), count == null ? 1 : count, null, null, prefix).stream()
                        .map(job -> Map.of("id", job.id(), "payload_bytes", job.payloadBytes()))
                        .toList();
            case "scan":
                Page<String> page = queue.scan(args.path("cursor").asText("0"), 0, scanned(args, count));
                return Arrays.asList(page.cursor(), page.found());
            case "len":
                return state(args) == null ? queue.len() : queue.len(state(args));
            case "stats":
                return stats(queue.stats());
            case "explain":
                return explained(args.hasNonNull("id") ? queue.explain(args.get("id").asText()) : queue.explain());
            case "next":
                return queue.next(args.get("id").asText(), count == null ? 1 : count).stream().map(Calls::ms).toList();
            case "configure":
                queue.configure(settings(args));
                return null;
            case "settings":
                return queue.settings();
            case "pause":
                queue.pause(duration(args, "duration"));
                return null;
            case "resume":
                queue.resume();
                return null;
            case "purge":
                boolean isAll = args.get("state").asText().equals("all");
                return isAll ? queue.purge() : queue.purge(state(args));
            default:
                return group(queue.group(args.path("group").asText()), method, args);
        }
    }

    private static Object group(QueueGroup group, String method, JsonNode args) {
        return switch (method) {
            case "group_set" -> group.set(groupSettings(args));
            case "group_clear" -> group.clear();
            case "group_pause" -> group.pause(duration(args, "duration"));
            case "group_resume" -> group.resume();
            case "group_stats" -> shown(group.stats());
            default -> throw new IllegalArgumentException("no method " + method);
        };
    }

    private static GroupSettings groupSettings(JsonNode args) {
        GroupSettings settings = new GroupSettings();
        if (args.hasNonNull("weight")) {
            settings.weight(args.get("weight").asInt());
        }
        if (args.hasNonNull("max")) {
            settings.max(args.get("max").asLong());
        }
        if (args.hasNonNull("rate")) {
            settings.rate(args.get("rate").get(0).asLong(), Duration.ofMillis(args.get("rate").get(1).asLong()));
        }
        return args.hasNonNull("maxlen") ? settings.maxLen(args.get("maxlen").asLong()) : settings;
    }

    private static Object shown(GroupStats stats) {
        if (stats == null) {
            return null;
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("weight", stats.weight());
        out.put("max", stats.max());
        out.put("rate", stats.rate() == null ? null : List.of(stats.rate().jobs(), stats.rate().window().toMillis()));
        out.put("maxlen", stats.maxLen());
        out.put("paused", ms(stats.pausedUntil()));
        out.put("waiting", stats.waiting());
        out.put("reserved", stats.reserved());
        out.put("rate_used", stats.rateUsed());
        return out;
    }

    private static ScanOptions scanned(JsonNode args, Integer count) {
        ScanOptions options = new ScanOptions().state(state(args)).count(count);
        options.match(args.path("match").asText(null)).group(args.path("group").asText(null));
        options.label(args.path("label").asText(null)).awaits(args.path("awaits").asText(null));
        options.reason(args.path("reason").asText(null));
        return args.path("recurring").asBoolean() ? options.recurring() : options;
    }

    private static Object explained(List<Explanation> all) {
        return all == null ? null : all.stream().map(each -> {
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("code", each.code());
            out.put("number", each.number());
            out.put("until", ms(each.until()));
            return out;
        }).toList();
    }

    private static Object attempt(FailedAttempt attempt) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("attempts", attempt.attempts());
        out.put("started", ms(attempt.started()));
        out.put("ended", ms(attempt.ended()));
        out.put("how", attempt.how());
        out.put("reason", attempt.reason());
        return out;
    }

    private static Settings settings(JsonNode args) {
        Settings settings = new Settings();
        if (args.hasNonNull("history")) {
            settings.history(args.get("history").asInt());
        }
        if (args.hasNonNull("backoff")) {
            settings.backoff(durations(args.get("backoff")));
        }
        if (args.path("backoff_default").asBoolean()) {
            settings.backoffDefault();
        }
        if (args.hasNonNull("maxlen")) {
            settings.maxLen(args.get("maxlen").asLong());
        }
        if (args.hasNonNull("ttr")) {
            settings.ttr(duration(args, "ttr"));
        }
        if (args.hasNonNull("rate")) {
            settings.rate(args.get("rate").get(0).asInt(), Duration.ofMillis(args.get("rate").get(1).asLong()));
        }
        return settings;
    }

    private static Object info(JobInfo job) {
        if (job == null) {
            return null;
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("id", job.id());
        out.put("state", text(job.state()));
        out.put("due", ms(job.due()));
        out.put("token", job.token());
        out.put("attempts", job.attempts());
        out.put("reason", job.reason());
        out.put("payload", Base64.getEncoder().encodeToString(job.payload()));
        out.put("payload_bytes", job.payloadBytes());
        out.put("history", job.history().stream().map(Calls::attempt).toList());
        return out;
    }

    private static Object stats(Stats stats) {
        return stats == null ? null : Map.of(
                "delayed", stats.delayed(), "ready", stats.ready(), "reserved", stats.reserved(), "dead", stats.dead(),
                "totals", stats.totals());
    }
}
