package io.github.redisdq;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** What callers get for a command that the server refused: an error that names the job, the argument and its value. */
final class Refusal {
    /** Commands that name a job after the key. Those that may name many say so by IDS. */
    private static final Set<String> OF_A_JOB =
            Set.of("DQ.ADD", "DQ.GET", "DQ.NACK", "DQ.TOUCH", "DQ.STEP", "DQ.SIGNAL", "DQ.EXPLAIN", "DQ.NEXT");
    private static final int LONGEST_WORD = 1100;

    private Refusal() {}

    /** The replies to the calls. Throws the first error among them. */
    static List<Object> checked(List<Object> replies, List<Words> calls) {
        for (int at = 0; at < replies.size(); at++) {
            if (replies.get(at) instanceof RefusedException said) {
                throw of(said, calls.get(at), null, partly(replies, calls));
            }
        }
        return replies;
    }

    /** The replies to a transaction up to EXEC's, which are none yet. MULTI and EXEC count as the calls beside them. */
    static void queued(List<Object> replies, List<Words> calls) {
        for (int at = 0; at < replies.size(); at++) {
            if (replies.get(at) instanceof RefusedException said) {
                throw of(said, calls.get(Math.min(Math.max(at - 1, 0), calls.size() - 1)), null, "");
            }
        }
    }

    /** How many jobs the calls have added although one of them was refused: not even EXEC takes those back. */
    private static String partly(List<Object> replies, List<Words> calls) {
        int added = 0;
        int all = 0;
        for (int at = 0; at < calls.size(); at++) {
            String name = Bytes.text(calls.get(at).all()[0]);
            if (name.equals("DQ.MADD")) {
                all += Reply.count(calls.get(at).all()[2]);
                added += (int) Reply.list(replies.get(at)).stream().filter(byte[].class::isInstance).count();
            } else if (name.equals("DQ.ADD")) {
                all++;
                added += replies.get(at) instanceof byte[] ? 1 : 0;
            }
        }
        return added == 0 ? "" : "; " + added + " of " + all + " jobs were added";
    }

    /** {@code id}: the job's, where the command does not have it at its usual place. {@code tail}: what the text adds. */
    static DqException of(RefusedException said, Words call, String id, String tail) {
        if (said.begins("ERR unknown command")) {
            return Frames.trimmed(Trouble.fatal(said));
        }
        byte[][] words = call.all();
        String name = Bytes.text(words[0]);
        boolean isOfMany = words.length > 2 && words[2] == Words.IDS;
        String job = id == null && OF_A_JOB.contains(name) && words.length > 2 && !isOfMany ? word(words[2]) : id;
        List<String> named = List.of(said.said().split("\\W+"));
        String argument = null;
        String value = null;
        for (int at = 2; at + 1 < words.length && argument == null; at++) {
            if (Words.isOption(words[at]) && named.contains(Bytes.text(words[at]))) {
                argument = Bytes.text(words[at]).toLowerCase(Locale.ROOT);
                value = word(words[at + 1]);
            }
        }
        String what = argument == null ? name : argument + "='" + value + "'";
        String of = (job == null ? "" : "job '" + job + "' of ") + "queue '" + word(Connector.keyOf(words)) + "'";
        String text = of + ": the server refused " + what + ": " + (said.code() + " " + said.said()).strip() + tail;
        return Frames.trimmed(
                Trouble.isFull(said)
                        ? new QueueFullException(text, said.answer(), job, argument, value)
                        : new RefusedException(text, said.answer(), job, argument, value));
    }

    private static String word(byte[] word) {
        return Bytes.text(word.length <= LONGEST_WORD ? word : Arrays.copyOf(word, LONGEST_WORD));
    }
}
