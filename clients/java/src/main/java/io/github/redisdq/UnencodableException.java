package io.github.redisdq;

/** What a handler returned cannot be encoded. */
final class UnencodableException extends DqException {
    UnencodableException(Throwable cause) {
        super("result cannot be encoded: " + Guard.text(cause), cause);
    }
}
