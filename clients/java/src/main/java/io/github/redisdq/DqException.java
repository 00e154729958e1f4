package io.github.redisdq;

/** The base of this library's exceptions. */
public class DqException extends RuntimeException {
    public DqException(String message) {
        super(message);
    }

    public DqException(String message, Throwable cause) {
        super(message, cause);
    }
}
