package io.github.redisdq.redisson;

import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.concurrent.TimeUnit;
import org.redisson.api.ObjectEncoding;
import org.redisson.api.ObjectListener;
import org.redisson.api.RExpirable;
import org.redisson.client.codec.Codec;

/** What Redisson does with a key of any type: a queue is one key, with all its jobs. */
@SuppressWarnings("deprecation") // of Redisson
abstract class RedissonKey extends RedissonKeyAsync implements RExpirable {
    RedissonKey(RExpirable key) {
        super(key);
    }

    @Override
    public Long getIdleTime() {
        return key.getIdleTime();
    }

    @Override
    public int getReferenceCount() {
        return key.getReferenceCount();
    }

    @Override
    public int getAccessFrequency() {
        return key.getAccessFrequency();
    }

    @Override
    public ObjectEncoding getInternalEncoding() {
        return key.getInternalEncoding();
    }

    @Override
    public long sizeInMemory() {
        return key.sizeInMemory();
    }

    @Override
    public void restore(byte[] state) {
        key.restore(state);
    }

    @Override
    public void restore(byte[] state, long timeToLive, TimeUnit unit) {
        key.restore(state, timeToLive, unit);
    }

    @Override
    public void restoreAndReplace(byte[] state) {
        key.restoreAndReplace(state);
    }

    @Override
    public void restoreAndReplace(byte[] state, long timeToLive, TimeUnit unit) {
        key.restoreAndReplace(state, timeToLive, unit);
    }

    @Override
    public byte[] dump() {
        return key.dump();
    }

    @Override
    public boolean touch() {
        return key.touch();
    }

    @Override
    public void migrate(String host, int port, int database, long timeoutMs) {
        key.migrate(host, port, database, timeoutMs);
    }

    @Override
    public void copy(String host, int port, int database, long timeoutMs) {
        key.copy(host, port, database, timeoutMs);
    }

    @Override
    public boolean copy(String destination) {
        return key.copy(destination);
    }

    @Override
    public boolean copy(String destination, int database) {
        return key.copy(destination, database);
    }

    @Override
    public boolean copyAndReplace(String destination) {
        return key.copyAndReplace(destination);
    }

    @Override
    public boolean copyAndReplace(String destination, int database) {
        return key.copyAndReplace(destination, database);
    }

    @Override
    public boolean move(int database) {
        return key.move(database);
    }

    @Override
    public String getName() {
        return key.getName();
    }

    @Override
    public void rename(String newName) {
        key.rename(newName);
    }

    @Override
    public boolean renamenx(String newName) {
        return key.renamenx(newName);
    }

    @Override
    public boolean isExists() {
        return key.isExists();
    }

    @Override
    public Codec getCodec() {
        return key.getCodec();
    }

    @Override
    public int addListener(ObjectListener listener) {
        return key.addListener(listener);
    }

    @Override
    public void removeListener(int id) {
        key.removeListener(id);
    }

    @Override
    public boolean expire(long timeToLive, TimeUnit unit) {
        return key.expire(timeToLive, unit);
    }

    @Override
    public boolean expireAt(long timestamp) {
        return key.expireAt(timestamp);
    }

    @Override
    public boolean expireAt(Date time) {
        return key.expireAt(time);
    }

    @Override
    public boolean expire(Instant time) {
        return key.expire(time);
    }

    @Override
    public boolean expireIfSet(Instant time) {
        return key.expireIfSet(time);
    }

    @Override
    public boolean expireIfNotSet(Instant time) {
        return key.expireIfNotSet(time);
    }

    @Override
    public boolean expireIfGreater(Instant time) {
        return key.expireIfGreater(time);
    }

    @Override
    public boolean expireIfLess(Instant time) {
        return key.expireIfLess(time);
    }

    @Override
    public boolean expire(Duration duration) {
        return key.expire(duration);
    }

    @Override
    public boolean expireIfSet(Duration duration) {
        return key.expireIfSet(duration);
    }

    @Override
    public boolean expireIfNotSet(Duration duration) {
        return key.expireIfNotSet(duration);
    }

    @Override
    public boolean expireIfGreater(Duration duration) {
        return key.expireIfGreater(duration);
    }

    @Override
    public boolean expireIfLess(Duration duration) {
        return key.expireIfLess(duration);
    }

    @Override
    public boolean clearExpire() {
        return key.clearExpire();
    }

    @Override
    public long remainTimeToLive() {
        return key.remainTimeToLive();
    }

    @Override
    public long getExpireTime() {
        return key.getExpireTime();
    }
}
