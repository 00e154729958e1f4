"""A budget of tokens for each customer."""

from support import Recipe

import token_budget

MINUTES_MS = 600_000


class TokenBudget(Recipe):
    def asked(self):
        """Calls of two customers, each estimated at 400 of 1000 tokens."""
        queue = self.queue()
        token_budget.budget(queue, 1000, MINUTES_MS)
        for n in range(4):
            token_budget.ask(queue, f"ada:{n}", "ada", "prompt", 400)
        token_budget.ask(queue, "bob:0", "bob", "prompt", 400)
        return queue

    def answered(self, queue, took):
        """Who is answered until the budget is used up; took: the tokens of each call, None where nothing is corrected."""
        ids = []
        while job := queue.take(0.01):
            ids.append(job.id)
            if took is not None:
                token_budget.answer(queue, job, lambda prompt: took)
            queue.ack(job)
        return sorted(ids)

    def test_estimates_hold_each_customer_apart(self):
        self.assertEqual(self.answered(self.asked(), None), ["ada:0", "ada:1", "bob:0"])

    def test_the_real_count_gives_back_what_was_not_used(self):
        self.assertEqual(self.answered(self.asked(), 100), ["ada:0", "ada:1", "ada:2", "ada:3", "bob:0"])

    def test_the_real_count_uses_up_what_was_more(self):
        self.assertEqual(self.answered(self.asked(), 1000), ["ada:0", "bob:0"])

    def test_without_a_budget_it_is_seen(self):
        queue = self.asked()
        token_budget.budget(queue, 0, 0)
        self.assertEqual(len(self.answered(queue, None)), 5)


class RequestsAndTokens(Recipe):
    """At most 1000 tokens and 5 requests of all, 400 tokens and 2 requests of one customer."""

    LEAST = token_budget.floor(1000, 5)

    def answered(self, sizes, least):
        """The tokens of the calls that are answered: one customer each, but that bob's are many."""
        queue = self.queue()
        queue.run("CFGSET", "RATE", 1000, MINUTES_MS)
        queue.run("GROUPSET", "bob", "RATE", 2 * self.LEAST, MINUTES_MS)
        for n, (customer, tokens) in enumerate(sizes):
            token_budget.ask(queue, f"{customer}:{n}", customer, str(tokens), tokens, least)
        took = []
        while job := queue.take(0.01):
            token_budget.answer(queue, job, int, least)
            queue.ack(job)
            took.append((job.id.split(":")[0], int(job.payload)))
        return took

    def test_both_budgets_hold(self):
        small = self.answered([(f"c{n}", 10) for n in range(20)], self.LEAST)
        self.assertEqual(len(small), 5, "requests")
        self.db.flushall()
        large = self.answered([(f"c{n}", 300) for n in range(20)], self.LEAST)
        self.assertEqual(sum(tokens for _, tokens in large), 900, "tokens")
        self.db.flushall()
        both = self.answered([("bob", 10)] * 5 + [("ada", 300)] * 5, self.LEAST)
        self.assertEqual([customer for customer, _ in both].count("bob"), 2)
        self.assertEqual(both.count(("ada", 300)), 2)

    def test_without_a_least_cost_it_is_seen(self):
        self.assertEqual(len(self.answered([(f"c{n}", 10) for n in range(20)], 1)), 20)

    def test_a_rate_of_a_group_counts_tokens_and_no_requests(self):
        queue = self.queue()
        queue.run("GROUPSET", "bob", "RATE", 5, MINUTES_MS)
        for n in range(5):
            token_budget.ask(queue, f"bob:{n}", "bob", "", 3)
        self.assertTrue(queue.take(0.01))
        self.assertIsNone(queue.take(0.01))
