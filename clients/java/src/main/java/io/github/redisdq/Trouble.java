package io.github.redisdq;

import java.time.Duration;

/** What to do when the server is away, or says no. */
final class Trouble {
    private static final Duration FIRST = Duration.ofMillis(50);
    private static final Duration LONGEST = Duration.ofSeconds(5);

    private Trouble() {}

    /** How long to wait the first, second, ... time. */
    static Duration pause(int times) {
        return Times.exponential(times, FIRST, LONGEST);
    }

    /** What cannot become right by waiting, in words that say what to do; null for all else. */
    static ConfigurationException fatal(Throwable error) {
        if (error instanceof ConfigurationException already) {
            return already;
        }
        if (!(error instanceof ServerException)) {
            boolean mayPass = error instanceof DqException || error instanceof VirtualMachineError;
            return mayPass ? null : new ConfigurationException(Guard.text(error), error);
        }
        String text = String.valueOf(error.getMessage());
        text = text.startsWith("ERR ") ? text.substring(4) : text;
        for (Fatality each : Fatality.ALL) {
            if (each.isFirst() ? text.startsWith(each.said()) : text.contains(each.said())) {
                return new ConfigurationException(each.what() + " (" + text + ")", error);
            }
        }
        return null;
    }

    /** Whether that very command is refused, and always will be. */
    static boolean isRefusal(ServerException error) {
        return error.begins("ERR ") && fatal(error) == null;
    }

    /** The queue has no room for what was to be added or kept. */
    static boolean isFull(ServerException error) {
        return error.begins("MAXLEN") || error.begins("MAXBYTES");
    }
}
