#pragma once

namespace espalier {

// What a SIGHUP means: the end, as that of Ctrl-C, or, if somebody has sent it and it is not that
// our terminal has gone, a notice.
enum class Hangup { kEnds, kNotice };

// Ctrl-C, SIGTERM and SIGHUP (and, as a notice, SIGUSR1) as something to wait for. The first is
// counted and wakes Wait; the second ends the process at once with exit code 130 (replicas die with
// the process that holds their agent). One object at a time; it restores the former handlers.
class Interrupts {
 public:
  explicit Interrupts(Hangup hangup = Hangup::kEnds);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool interrupted() const;
  // The first was a SIGTERM: nobody at a keyboard, but whoever runs the machine.
  bool terminated() const;
  // SIGUSR1 came, the notice that batch systems give before they end a job. No interrupt.
  bool noticed() const;
  // How often SIGHUP came as a notice. No interrupt.
  int hangups() const;
  // Returns when the time has passed, or earlier when the first interrupt or a notice comes
  // meanwhile.
  void Wait(double seconds) const;
  // Ends a Wait, from any thread.
  void Wake() const;
};

}  // namespace espalier
