#pragma once

namespace espalier {

// What a SIGHUP means: the end, as Ctrl-C does; or a notice, if a process has sent it (it is not
// that our terminal has gone) or if it was ignored until now.
enum class Hangup { kEnds, kNotice };

// Whoever reads our output cannot end us: to be called by what others depend on, a service or an
// agent, before it prints.
void IgnoreBrokenPipes();

// Ctrl-C, SIGTERM and SIGHUP (and, as a notice, SIGUSR1) as something to wait for. What was ignored
// when the process began (nohup ignores SIGHUP, a script's `&` ignores SIGINT) ends nothing. The
// first is counted and wakes Wait; the second (of SIGTERM and SIGHUP, after a second) ends the
// process at once with exit code 130 (replicas die with the process that holds their agent). One
// object at a time; it restores the former handlers.
class Interrupts {
 public:
  explicit Interrupts(Hangup hangup = Hangup::kEnds);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool interrupted() const;
  // Whether the first was a SIGTERM, which comes from the machine's administration, or the end of
  // our terminal, rather than a key.
  bool terminated() const;
  // Whether SIGUSR1 came, the notice that batch systems give before they end a job. It is no
  // interrupt.
  bool noticed() const;
  // How often SIGHUP came as a notice, which is no interrupt.
  int hangups() const;
  // Returns when the time has passed, or earlier when the first interrupt or a notice comes
  // meanwhile.
  void Wait(double seconds) const;
  // Ends a Wait, from any thread.
  void Wake() const;
};

}  // namespace espalier
