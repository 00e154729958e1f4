import static java.nio.charset.StandardCharsets.UTF_8;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.CommandOutput;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;

/** dq's commands with Spring Data Redis 3.5 on Lettuce; see docs/clients.md. */
public class SpringMails {
    /** What `execute` of a RedisTemplate cannot: `output` says what the answer is. */
    static <T> T ask(RedisConnection redis, CommandOutput<byte[], byte[], ?> output, String command, Object... words) {
        byte[][] arguments = Stream.of(words)
                .map(word -> word instanceof byte[] raw ? raw : word.toString().getBytes(UTF_8))
                .toArray(byte[][]::new);
        @SuppressWarnings("unchecked")
        T answer = (T) ((LettuceConnection) redis).execute(command, output, arguments);
        return answer;
    }

    public static void main(String[] args) {
        var factory = new LettuceConnectionFactory(LettuceConnectionFactory.createRedisConfiguration("redis://localhost"));
        factory.start();

        // Scripts: what a template can do.
        var template = new StringRedisTemplate(factory);
        var add = RedisScript.of("return redis.call('DQ.ADD', KEYS[1], unpack(ARGV))", String.class);
        System.out.println(template.execute(add, List.of("mails"), "welcome:ann", "Dear Ann", "ATTEMPTS", "5"));
        var length = RedisScript.of("return redis.call('DQ.LEN', KEYS[1])", Long.class);
        System.out.println(template.execute(length, List.of("mails")));

        // Its connection: all the rest.
        try (RedisConnection redis = factory.getConnection()) {
            List<Object> job = ask(redis, new ArrayOutput<>(ByteArrayCodec.INSTANCE), "DQ.POP", "mails");
            Object id = job.get(0);
            Object token = job.get(2);
            List<Object> acked = ask(redis, new ArrayOutput<>(ByteArrayCodec.INSTANCE),
                    "DQ.ACK", "mails", "WITHTOKENS", "IDS", 1, id, token);
            System.out.println(acked.get(0));
        }
        factory.destroy();
    }
}
