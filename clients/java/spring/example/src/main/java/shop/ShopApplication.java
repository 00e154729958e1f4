package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Orders that nobody pays are closed after half an hour. */
@SpringBootApplication
public class ShopApplication {
    public static void main(String[] words) {
        SpringApplication.run(ShopApplication.class, words);
    }
}
