package io.github.redisdq;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** What to do if the server cannot be reached, or refuses a command. */
final class Trouble {
    private static final long FIRST_MS = 50;
    private static final long LONGEST_MS = 5000;
    private static final double JITTER = 0.25;

    private Trouble() {}

    /** How long to wait after the first, second, ... failure to reach the server. The jitter only adds. */
    static Duration pause(int times) {
        double grown = Math.min(LONGEST_MS, FIRST_MS * Math.pow(2, Math.min(times - 1, 62)));
        return Duration.ofMillis((long) Math.ceil(grown * (1 + JITTER * ThreadLocalRandom.current().nextDouble())));
    }

    /** The error that waiting does not fix, with what to do; null for all other errors. */
    static ConfigurationException fatal(Throwable error) {
        if (error instanceof ConfigurationException already) {
            return already;
        }
        if (!(error instanceof RefusedException said)) {
            boolean mayPass = error instanceof DqException || error instanceof VirtualMachineError;
            return mayPass ? null : new ConfigurationException(Guard.text(error), error);
        }
        String text = said.answer();
        text = text.startsWith("ERR ") ? text.substring(4) : text;
        for (Fatality each : Fatality.ALL) {
            if (each.isFirst() ? text.startsWith(each.said()) : text.contains(each.said())) {
                return new ConfigurationException(each.what() + " (" + text + ")", error);
            }
        }
        return null;
    }

    /** Whether a reply did not come in time: this end has closed the connection. All clients name such errors so. */
    static boolean isLate(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each.getClass().getSimpleName().endsWith("TimeoutException")) {
                return true;
            }
        }
        return false;
    }

    /** Whether the server will refuse this command again. */
    static boolean isRefusal(RefusedException error) {
        return error.begins("ERR ") && fatal(error) == null;
    }

    /** The queue has no room for what was to be added or kept. */
    static boolean isFull(RefusedException error) {
        return error.begins("MAXLEN") || error.begins("MAXBYTES");
    }
}
