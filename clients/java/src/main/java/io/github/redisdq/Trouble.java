package io.github.redisdq;

import java.time.Duration;

/** What to do when the server is away, or says no. */
final class Trouble {
    private static final Duration FIRST = Duration.ofMillis(50);
    private static final Duration LONGEST = Duration.ofSeconds(5);
    private static final String NO_PASSWORD =
            "the server requires a password, and none was given: set it in the URL, redis://user:password@host";
    private static final String PASSWORD =
            "the server refuses user name or password: set the right ones in the URL, redis://user:password@host";
    private static final String OLD = "the server's dq module is older than this library: upgrade the module";
    private static final String DATABASE = "the server does not have this database: choose another number in the URL";
    private static final String[][] ANYWHERE = {
        {"NOPERM", "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands"},
        {"NOAUTH", NO_PASSWORD},
        {"WRONGPASS", PASSWORD},
        {"without any password configured", "the server has no password for this user: take it out of the URL"},
        {
            "unknown command",
            "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"
        },
        {"DB index", DATABASE},
        {"invalid DB", DATABASE},
    };
    private static final String[][] FIRST_WORDS = {
        {"WRONGTYPE", "a queue's key holds a value of another type: choose another name for the queue, or delete that key"},
        {"syntax error", OLD},
        {"wrong number of arguments", OLD},
        {"timeout is not a float", OLD},
    };

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
        for (String[] each : ANYWHERE) {
            if (text.contains(each[0])) {
                return new ConfigurationException(each[1] + " (" + text + ")", error);
            }
        }
        for (String[] each : FIRST_WORDS) {
            if (text.startsWith(each[0])) {
                return new ConfigurationException(each[1] + " (" + text + ")", error);
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
