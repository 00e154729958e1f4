package io.github.redisdq;

/** What a job's methods need from their surroundings. */
interface Rim {
    /** The server's reply to a command about the job. It is sent again until there is one, or the job is lost. */
    Object ask(Job job, Words command) throws InterruptedException;

    /** Another worker has the job, as the server says. */
    void lose(Job job);

    /** The job's handler has ended its attempt. */
    void end(Job job, Outcome outcome);

    /** The job has progress to send. */
    void report(Job job);

    /** The id of a job that its parent spawns, in the parent's shard: the given one, or one like the other. */
    String childId(Job parent, String given, String like);

    /** The command that adds a job to the queue of its parent. */
    Words adding(Job parent, String id, DqQueue.NewJob child);
}
