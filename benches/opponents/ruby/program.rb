# frozen_string_literal: true

# What the harness has Sidekiq do: as python/program.py, for the tasks that it needs.
require "json"
require "sidekiq"
require "sidekiq/launcher"

BATCH = 100
PAYLOAD_BYTES = 64

def tell(facts)
  puts JSON.generate(facts)
  $stdout.flush
end

# What a worker has been given.
class Seen
  def initialize(wanted, warm)
    @wanted, @warm, @numbers, @twice, @lock = wanted, warm, {}, 0, Mutex.new
  end

  def handle(payload)
    number = payload.split(" ", 3)[1]
    @lock.synchronize do
      next @twice += 1 if @numbers.key?(number)

      @numbers[number] = true
      tell(warm: true) if @numbers.size == @warm
      tell(ended: Time.now.to_f, twice: @twice, late_us: []) if @numbers.size == @wanted
    end
  end
end

class Job
  include Sidekiq::Worker
  class << self
    attr_accessor :seen
  end

  def perform(payload)
    self.class.seen.handle(payload)
  end
end

def add(first, count)
  (first...(first + count)).each_slice(BATCH) do |numbers|
    payloads = numbers.map { |number| ["0 #{number} ".ljust(PAYLOAD_BYTES, "x")] }
    Sidekiq::Client.push_bulk("class" => Job, "args" => payloads)
  end
end

def ready(count, warm)
  add(0, warm)
  $stdin.gets if warm.positive?
  began = Time.now.to_f
  add(warm, count)
  tell(began: began)
end

def work(wanted, warm)
  Job.seen = Seen.new(wanted, warm)
  Sidekiq.logger.level = Logger::WARN
  Sidekiq::Launcher.new(Sidekiq.options.merge(concurrency: 10, queues: ["default"])).run
  tell(ready: true)
  sleep
end

address = { url: "redis://127.0.0.1:#{ENV.fetch('BENCH_PORT')}" }
Sidekiq.configure_client { |config| config.redis = address.merge(size: 15) }
task, *numbers = ARGV.drop(1)
{ "ready" => method(:ready), "work" => method(:work) }.fetch(task).call(*numbers.map(&:to_i))
