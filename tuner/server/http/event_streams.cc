#include "tuner/server/http/event_streams.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file_descriptor.h"
#include "base/guarded.h"
#include "spdlog/spdlog.h"
#include "tuner/server/http/live_trials.h"
#include "tuner/web/feed/event_texts.h"

namespace espalier {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kStreamHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    "X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

absl::StatusOr<std::optional<StudyId>> StudyIn(const HttpCall& call) {
  const auto given = call.query.find("study");
  if (given == call.query.end()) return std::nullopt;
  std::int64_t id = 0;
  if (absl::SimpleAtoi(given->second, &id) && id > 0) return StudyId(id);
  return absl::InvalidArgumentError(
      absl::StrCat("study \"", given->second, "\": needs the id of a study"));
}

// Where the client has come to; nullopt: it begins.
absl::StatusOr<std::optional<FeedCursor>> CursorIn(const HttpCall& call) {
  const auto given = call.query.find("after");
  const std::string text = !call.last_event_id.empty() ? call.last_event_id
                           : given != call.query.end() ? given->second
                                                       : "";
  if (text.empty()) return std::nullopt;
  return ParseFeedCursor(text);
}

}  // namespace

class EventStreams::Impl {
  using Text = std::shared_ptr<const std::string>;

  // One of the streams there may be, for as long as it is held.
  class Place {
   public:
    explicit Place(std::shared_ptr<std::atomic<std::size_t>> taken) : taken_(std::move(taken)) {}
    ~Place() { --*taken_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    const std::shared_ptr<std::atomic<std::size_t>> taken_;
  };

  struct Stream {
    std::unique_ptr<StreamConnection> connection;
    std::function<absl::Status()> admitted;
    std::shared_ptr<Place> place;
    std::optional<StudyId> study;
    std::int64_t revision = 0;  // up to here it has been told, or is being told
    std::deque<Text> under_way{};
    std::size_t sent = 0;          // of the first of them
    Clock::time_point progress{};  // when the socket last took anything
  };

  // What other threads hand to that of the streams.
  class Inbox {
   public:
    Inbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
      ESPALIER_CHECK(wake_.get() >= 0, "a process has descriptors left when it starts");
    }

    struct Mail {
      bool stop = false;
      bool news = false;
      std::vector<Stream> streams;
      std::optional<LiveTrials> live;
      bool looked = false;  // with or without something to see
    };

    template <typename Write>
    void Put(Write write) {
      {
        const std::lock_guard lock(mutex_);
        if (mail_.stop) return;
        write(mail_);
      }
      const std::uint64_t one = 1;
      while (::write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
      }
    }
    Mail Take() {
      std::uint64_t count = 0;
      while (::read(wake_.get(), &count, sizeof(count)) < 0 && errno == EINTR) {
      }
      const std::lock_guard lock(mutex_);
      Mail taken = std::exchange(mail_, {});
      mail_.stop = taken.stop;
      return taken;
    }
    int wake() const { return wake_.get(); }

   private:
    const FileDescriptor wake_;
    std::mutex mutex_;  // guards what follows
    Mail mail_;
  };

  // Something that is due again and again.
  class Due {
   public:
    explicit Due(int every_ms) : every_(every_ms) {}

    Clock::time_point at() const { return at_; }
    void Begin(Clock::time_point now) { at_ = now + every_; }
    bool Take(Clock::time_point now) {
      if (now < at_) return false;
      Begin(now);
      return true;
    }

   private:
    const std::chrono::milliseconds every_;
    Clock::time_point at_;
  };

 public:
  Impl(RevisionLog& log, Tuner& tuner, const EventStreamLimits& limits)
      : log_(log),
        tuner_(tuner),
        limits_(limits),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        live_(limits.live_ms),
        alive_(limits.alive_ms),
        rights_(limits.rights_ms) {
    ESPALIER_CHECK(epoll_.get() >= 0, "a process has descriptors left when it starts");
    Watch(EPOLL_CTL_ADD, inbox_->wake(), kWake, EPOLLIN);
    log_.WakeBy([inbox = inbox_, taken = taken_] {
      if (*taken > 0) inbox->Put([](Inbox::Mail& mail) { mail.news = true; });
    });
    thread_ = std::thread([this] { Run(); });
  }
  ~Impl() { Stop(); }

  HttpAnswer Open(const HttpCall& call);
  std::size_t open() const { return *taken_; }
  const RevisionLog& log() const { return log_; }

  void Stop() {
    const std::lock_guard lock(stop_);
    log_.WakeBy(nullptr);
    inbox_->Put([](Inbox::Mail& mail) { mail.stop = true; });
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr std::uint64_t kWake = 0;

  // What follows runs on the thread.
  void Run();
  void Turn(Clock::time_point now, Inbox::Mail mail);
  int MostWait_ms() const;
  void Hear(std::uint64_t number, std::uint32_t events);
  void TakeUp(Clock::time_point now, Stream stream);
  void NewsAreDue(Clock::time_point now);
  void TellNews(Clock::time_point now);
  void TellLive(Clock::time_point now);
  void TellAll(Clock::time_point now, const std::string& text);
  void AskForRights();
  void AskForLive();
  void DropSilent(Clock::time_point now);
  void Tell(Clock::time_point now, std::uint64_t number, Stream& stream, Text text);
  // Sends what fits. False: the client has gone.
  bool Flush(Clock::time_point now, Stream& stream);
  void Drop(std::uint64_t number);
  void DropBroken();
  void Watch(int operation, int socket, std::uint64_t number, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    ::epoll_ctl(epoll_.get(), operation, socket, &event);
  }
  FeedCursor At(std::int64_t revision) const { return {log_.incarnation(), revision}; }

  RevisionLog& log_;
  Tuner& tuner_;
  const EventStreamLimits limits_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  const std::shared_ptr<std::atomic<std::size_t>> taken_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::mutex stop_;  // one Stop at a time

  // Of the thread.
  const FileDescriptor epoll_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_ = kWake + 1;
  std::vector<std::uint64_t> broken_;
  std::optional<Clock::time_point> news_due_;
  Clock::time_point news_told_;
  Due live_;
  Due alive_;
  Due rights_;
  bool looking_ = false;  // at what runs
  std::optional<LiveTrials> seen_;
  std::thread thread_;  // last: starts when all else is there
};

HttpAnswer EventStreams::Impl::Open(const HttpCall& call) {
  const absl::StatusOr<std::optional<StudyId>> study = StudyIn(call);
  if (!study.ok()) return {study.status(), ""};
  const absl::StatusOr<std::optional<FeedCursor>> cursor = CursorIn(call);
  if (!cursor.ok()) return {cursor.status(), ""};
  if (++*taken_ > limits_.most) {
    --*taken_;
    HttpAnswer full{absl::UnavailableError(absl::StrCat(
                        "as many streams of events are open as there may be, ", limits_.most,
                        ": ask for what has changed now and then, and for a stream again later")),
                    ""};
    full.headers = {{"Retry-After", absl::StrCat(kRetryEvents_s)}};
    return full;
  }
  const auto place = std::make_shared<Place>(taken_);
  const std::int64_t head = log_.revision();
  std::string first = kStreamHead;
  std::int64_t revision = head;
  if (*cursor && (*cursor)->incarnation == log_.incarnation()) {
    revision = (*cursor)->revision;
    first += HelloEvent(At(revision), Now());
  } else {
    first += HelloEvent(At(head), Now());
    if (*cursor) first += ResyncEvent(At(head), Now());
  }
  HttpAnswer answer{absl::OkStatus(), ""};
  answer.stream = [inbox = inbox_, place, study = *study, revision,
                   text = std::make_shared<const std::string>(std::move(first))](
                      std::unique_ptr<StreamConnection> connection,
                      std::function<absl::Status()> admitted) {
    Stream stream{.connection = std::move(connection),
                  .admitted = std::move(admitted),
                  .place = place,
                  .study = study,
                  .revision = revision,
                  .under_way = {text}};
    inbox->Put([&stream](Inbox::Mail& mail) { mail.streams.push_back(std::move(stream)); });
  };
  return answer;
}

void EventStreams::Impl::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), MostWait_ms());
    Inbox::Mail mail = inbox_->Take();
    if (mail.stop) break;
    const absl::Status done = Guarded([] { return std::string("streams of events"); },
                                      [&] {
                                        for (int i = 0; i < ready; ++i) {
                                          const epoll_event& event =
                                              events[static_cast<std::size_t>(i)];
                                          if (event.data.u64 != kWake)
                                            Hear(event.data.u64, event.events);
                                        }
                                        Turn(Clock::now(), std::move(mail));
                                      });
    if (done.ok()) continue;
    // Pages come again, and begin with all that there is.
    spdlog::error("event=event_streams_failed error=\"{}\"", std::string(done.message()));
    streams_.clear();
  }
  streams_.clear();
}

int EventStreams::Impl::MostWait_ms() const {
  if (streams_.empty()) return -1;
  Clock::time_point next = std::min({live_.at(), alive_.at(), rights_.at()});
  if (news_due_) next = std::min(next, *news_due_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void EventStreams::Impl::Turn(Clock::time_point now, Inbox::Mail mail) {
  const bool first = streams_.empty();
  for (Stream& stream : mail.streams) TakeUp(now, std::move(stream));
  if (first && !streams_.empty()) {
    live_.Begin(now);
    alive_.Begin(now);
    rights_.Begin(now);
    seen_.reset();
    if (!looking_) AskForLive();
  }
  if (mail.news) NewsAreDue(now);
  if (mail.looked) looking_ = false;
  if (mail.live) {
    if (seen_ && seen_->pool != mail.live->pool) log_.TakePool();
    seen_ = std::move(mail.live);
    TellLive(now);
  }
  if (streams_.empty()) return;
  if (news_due_ && *news_due_ <= now) TellNews(now);
  if (live_.Take(now) && !looking_) AskForLive();
  if (rights_.Take(now)) {
    AskForRights();
    DropSilent(now);
  }
  if (alive_.Take(now)) TellAll(now, AliveEvent(Now()));
  DropBroken();
}

void EventStreams::Impl::TakeUp(Clock::time_point now, Stream stream) {
  const std::uint64_t number = next_++;
  const int socket = stream.connection->socket();
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &limits_.send_buffer, sizeof(int));
  stream.progress = now;
  Stream& kept = streams_.emplace(number, std::move(stream)).first->second;
  Watch(EPOLL_CTL_ADD, socket, number, EPOLLIN | EPOLLRDHUP);
  Tell(now, number, kept, nullptr);
  // It may be behind, or what has come while it was opened may be for it.
  NewsAreDue(now);
}

void EventStreams::Impl::Hear(std::uint64_t number, std::uint32_t events) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  const bool ended = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (ended || ((events & EPOLLIN) != 0 && !stream.connection->Hear())) {
    Drop(number);
    return;
  }
  if ((events & EPOLLOUT) == 0) return;
  const Clock::time_point now = Clock::now();
  if (!Flush(now, stream)) {
    Drop(number);
  } else if (stream.under_way.empty()) {
    Watch(EPOLL_CTL_MOD, stream.connection->socket(), number, EPOLLIN | EPOLLRDHUP);
    // What it has not been told meanwhile.
    NewsAreDue(now);
  }
}

bool EventStreams::Impl::Flush(Clock::time_point now, Stream& stream) {
  while (!stream.under_way.empty()) {
    const std::string_view rest = std::string_view(*stream.under_way.front()).substr(stream.sent);
    const std::optional<std::size_t> sent = stream.connection->SendAtOnce(rest);
    if (!sent) return false;
    if (*sent == 0) return true;
    stream.progress = now;
    stream.sent += *sent;
    if (*sent < rest.size()) continue;
    stream.under_way.pop_front();
    stream.sent = 0;
  }
  return true;
}

void EventStreams::Impl::Tell(Clock::time_point now, std::uint64_t number, Stream& stream,
                              Text text) {
  if (text != nullptr) stream.under_way.push_back(std::move(text));
  if (stream.under_way.size() == 1 && stream.sent == 0) stream.progress = now;
  if (!Flush(now, stream)) {
    broken_.push_back(number);
  } else if (!stream.under_way.empty()) {
    Watch(EPOLL_CTL_MOD, stream.connection->socket(), number, EPOLLIN | EPOLLRDHUP | EPOLLOUT);
  }
}

void EventStreams::Impl::NewsAreDue(Clock::time_point now) {
  using std::chrono::milliseconds;
  if (news_due_) return;
  news_due_ =
      std::max(now + milliseconds(limits_.gather_ms), news_told_ + milliseconds(limits_.news_ms));
}

void EventStreams::Impl::TellNews(Clock::time_point now) {
  news_due_.reset();
  news_told_ = now;
  // Most streams are at the same place, and are told the same.
  struct Telling {
    Text text;
    std::int64_t revision = 0;
    bool more = false;
  };
  std::map<std::tuple<std::int64_t, std::optional<StudyId>>, Telling> tellings;
  bool more = false;
  for (auto& [number, stream] : streams_) {
    if (!stream.under_way.empty()) continue;
    const auto [it, is_new] = tellings.try_emplace({stream.revision, stream.study});
    Telling& telling = it->second;
    if (is_new) {
      const RevisionLog::News news = log_.Since(stream.revision, stream.study, kMaxTrialsInEvent);
      telling.revision = news.revision;
      telling.more = news.more;
      const FeedCursor at = At(news.revision);
      std::string text;
      if (!news.complete) {
        text = ResyncEvent(at, Now());
      } else if (news.any()) {
        text = NewsEvents(
            at, Now(), news,
            log_.ValuesIn(stream.revision, news.revision, stream.study, kMaxValuesInEvent));
      }
      if (!text.empty()) telling.text = std::make_shared<const std::string>(std::move(text));
    }
    stream.revision = telling.revision;
    more = more || telling.more;
    if (telling.text != nullptr) Tell(now, number, stream, telling.text);
  }
  if (more) NewsAreDue(now);
}

void EventStreams::Impl::TellLive(Clock::time_point now) {
  std::map<std::optional<StudyId>, Text> texts;
  for (auto& [number, stream] : streams_) {
    if (!stream.under_way.empty()) continue;
    const auto [it, is_new] = texts.try_emplace(stream.study);
    if (is_new) {
      it->second =
          std::make_shared<const std::string>(LiveEvent(seen_->at, seen_->trials, stream.study));
    }
    if (!it->second->empty()) Tell(now, number, stream, it->second);
  }
}

void EventStreams::Impl::TellAll(Clock::time_point now, const std::string& text) {
  const auto shared = std::make_shared<const std::string>(text);
  for (auto& [number, stream] : streams_) {
    if (stream.under_way.empty()) Tell(now, number, stream, shared);
  }
}

void EventStreams::Impl::AskForLive() {
  looking_ = true;
  tuner_.ReadThen([inbox = inbox_](const View* view) {
    std::optional<LiveTrials> live;
    if (view != nullptr) live = LookAtTrials(*view);
    inbox->Put([&live](Inbox::Mail& mail) {
      mail.looked = true;
      if (live) mail.live = std::move(live);
    });
  });
}

void EventStreams::Impl::AskForRights() {
  for (const auto& [number, stream] : streams_) {
    if (stream.admitted && !stream.admitted().ok()) broken_.push_back(number);
  }
}

void EventStreams::Impl::DropSilent(Clock::time_point now) {
  for (const auto& [number, stream] : streams_) {
    const bool silent = now - stream.progress > std::chrono::milliseconds(limits_.silent_ms);
    if (!stream.under_way.empty() && silent) broken_.push_back(number);
  }
}

void EventStreams::Impl::Drop(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.connection->socket(), nullptr);
  streams_.erase(found);
}

void EventStreams::Impl::DropBroken() {
  for (const std::uint64_t number : std::exchange(broken_, {})) Drop(number);
}

EventStreams::EventStreams(RevisionLog& log, Tuner& tuner, const EventStreamLimits& limits)
    : impl_(std::make_unique<Impl>(log, tuner, limits)) {}
EventStreams::~EventStreams() = default;
HttpAnswer EventStreams::Open(const HttpCall& call) { return impl_->Open(call); }
std::size_t EventStreams::open() const { return impl_->open(); }
const RevisionLog& EventStreams::log() const { return impl_->log(); }
void EventStreams::Stop() { impl_->Stop(); }

}  // namespace espalier
