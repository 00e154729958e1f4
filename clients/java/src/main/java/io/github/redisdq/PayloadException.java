package io.github.redisdq;

/** The payload is not what the queue's codec reads. {@link Job#payload()} still has its bytes. */
public final class PayloadException extends DqException {
    public PayloadException(String message, Throwable cause) {
        super(message, cause);
    }
}
