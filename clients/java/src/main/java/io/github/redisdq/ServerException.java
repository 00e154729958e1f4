package io.github.redisdq;

/** The server replied an error. */
public class ServerException extends DqException {
    public ServerException(String message) {
        super(message, null);
    }

    boolean begins(String word) {
        return getMessage() != null && getMessage().startsWith(word);
    }
}
