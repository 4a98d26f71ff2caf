#pragma once

namespace espalier {

// Ctrl-C, SIGTERM and SIGHUP (and, as a notice, SIGUSR1) as something to wait for. The first is
// counted and wakes Wait; the second ends the process at once with exit code 130 (replicas die with
// the process that holds their agent). One object at a time; it restores the former handlers.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool interrupted() const;
  // The first was a SIGTERM: nobody at a keyboard, but whoever runs the machine.
  bool terminated() const;
  // SIGUSR1 came, the notice that batch systems give before they end a job. No interrupt.
  bool noticed() const;
  // Returns when the time has passed, or earlier when the first interrupt or a notice comes
  // meanwhile.
  void Wait(double seconds) const;
};

}  // namespace espalier
