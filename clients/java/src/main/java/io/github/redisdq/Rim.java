package io.github.redisdq;

/** What a job's methods need of the world around it. */
interface Rim {
    /** The server's answer to a command about the job. Tried again until there is one, or the job is taken from its handler. */
    Object ask(Job job, Words command) throws InterruptedException;

    /** The server says that somebody else has it. */
    void lose(Job job);

    /** Its attempt has ended. */
    void end(Job job, Outcome outcome);

    /** Its progress is to be written. */
    void report(Job job);

    /** What adds a job to the queue of another one. */
    Words adding(Job parent, String id, DqQueue.NewJob child);
}
