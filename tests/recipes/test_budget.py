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
