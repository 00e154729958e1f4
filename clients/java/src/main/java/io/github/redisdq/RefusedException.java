package io.github.redisdq;

import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The server refuses a command. What its answer does not tell is null. */
public class RefusedException extends DqException {
    private static final Pattern ANSWER = Pattern.compile("-?([A-Z][A-Z0-9]+)(?: (.*))?", Pattern.DOTALL);

    private final String answer;
    private final String id;
    private final String argument;
    private final String value;

    /** For a {@link Connector}. {@code answer}: the server's, as {@code NOPERM this user has no permissions}. */
    public RefusedException(String answer) {
        this(answer, answer, null, null, null);
    }

    RefusedException(String message, String answer, String id, String argument, String value) {
        super(message, null);
        this.answer = String.valueOf(answer);
        this.id = id;
        this.argument = argument;
        this.value = value;
    }

    /** The first word of the server's answer: {@code ERR}, {@code NOPERM}, {@code OOM}, {@code WRONGTYPE}, ... */
    public String code() {
        Matcher found = ANSWER.matcher(answer);
        return found.matches() ? found.group(1) : "ERR";
    }

    /** The server's answer, without that word. */
    public String said() {
        Matcher found = ANSWER.matcher(answer);
        return found.matches() ? Objects.requireNonNullElse(found.group(2), "") : answer;
    }

    /** The job's id. */
    public String id() {
        return id;
    }

    /** What is refused, such as {@code tz}. */
    public String argument() {
        return argument;
    }

    /** What that was. */
    public String value() {
        return value;
    }

    /** The server's answer, with its code. */
    String answer() {
        return answer;
    }

    boolean begins(String word) {
        return answer.startsWith(word);
    }
}
