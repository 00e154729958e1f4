package io.github.redisdq;

/**
 * The payload is not what the queue's codec reads. A handler that throws it ends the job: it is dead, as no further attempt
 * would help. {@link Job#payload()} still has its bytes.
 */
public final class PayloadException extends DqException {
    static final String SAID = "payload cannot be decoded: ";

    public PayloadException(String message, Throwable cause) {
        super(message, cause);
    }
}
