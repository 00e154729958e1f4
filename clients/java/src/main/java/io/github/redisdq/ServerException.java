package io.github.redisdq;

/** What the server answered is an error. */
public class ServerException extends DqException {
    public ServerException(String message) {
        super(message, null);
    }

    boolean begins(String word) {
        return getMessage() != null && getMessage().startsWith(word);
    }
}
