#pragma once

#include <stdint.h>

// The C interface of libespalier_torch.so, which the Python package calls by ctypes. What takes
// tensors is an operator of LibTorch's dispatcher instead (operators.cc), so that no source here
// sees Python.
//
// Unless said otherwise a function returns 0, or -1 where it has failed; esp_error() then says why.
// All of them are for the thread that trains. Text is UTF-8. Two parcels carry what is of any size:
// what C++ gives (esp_incoming, torch.ops.espalier.incoming) and what Python gives (esp_give,
// torch.ops.espalier.give).

// NOLINTBEGIN(modernize-*): C reads this as well.
#ifdef __cplusplus
extern "C" {
#endif

// What C++ asks of Python. Each returns 0, or 1 where it has failed; then it has given one text
// that says why, and Python keeps the exception.
typedef struct {
  // Steps the model's optimizer, with each parameter group's rate times its factor. Gives a text
  // where the program leaves this step out.
  int (*step)(int64_t model, const double* factors, int64_t groups);
  // Of a model. `what`: 0 gives the names of its parameters and these themselves, 1 those of its
  // buffers; 2 takes over the buffers in the parcel, by name; 3 gives what else is of its state as
  // bytes, 4 takes these over. 5: hooks on its parameters' gradients stand back from here on where
  // esp_defers_hooks says so; 6: they are called with the gradients that there are.
  int (*model)(int64_t model, int what);
  // Of a model's optimizers. `what`: 0 gives the tensors of their state and, as a text, its numbers
  // and those of options and schedules; 1 the names of the tensors. 2 has the second moments of
  // Adam told again (torch.ops.espalier.set_second_moments), as they are in that state.
  int (*compared)(int64_t model, int what);
  // Hands over and takes over an optimizer's state: a text and tensors, in parcels.
  int (*write_optimizer)(int64_t model);
  int (*read_optimizer)(int64_t model);
  int (*clear_optimizer)(int64_t model);
  // A state's bytes, in parcels. `what`: 0 save, 1 load, 2 sync.
  int (*state)(const char* name, int what);
  // `what`: 0 gives a pickle and the memory that it names; the position and the accumulators are in
  // the parcel. 1 loads the file at `path`, and gives these two texts. 2 gives the position alone.
  int (*checkpoint)(const char* path, int what);
  // `what`: 0 gives this replica's own part. 1 takes the parts of all, which are in the parcel.
  int (*sums)(int what);
  // The factor of a scaling rule of the program's, for one parameter group; NaN where it has
  // failed.
  double (*factor)(int64_t rule, int64_t group, double scale, double sqr, double var,
                   double progress, double base_batch_size, double dataset_size);
  // The process ends after this. Any thread.
  void (*before_exit)(void);
  // What esp_rehearse is about: a forward and backward pass as of a microbatch, and maybe steps.
  int (*rehearse)(void);
} EspalierCallbacks;

// The last failure of this thread. `kind`: 1 wrong use, 2 the trial cannot go on, 3 a callback has
// failed, 4 anything else.
const char* esp_error(int* kind);

// The version of LibTorch that the library was built with, and of Espalier.
const char* esp_torch_version(void);
const char* esp_version(void);

// ---- the trial

// Once in a process. `argv` may hold "--set", "name=value".
int esp_open(int argc, const char* const* argv, const EspalierCallbacks* callbacks);
typedef struct {
  int64_t number;
  uint64_t seed;
  int64_t device;  // of CUDA; -1: the CPU
  int64_t agent;   // 1: an agent has started this process
  int64_t adaptive_batch;
  int64_t threads;
  int64_t joins;  // replicas of the group that this one is to join, with it; 0: it joins none
} EspalierTrial;
int esp_trial(EspalierTrial* trial);
// A JSON object, nested choices flattened; asking for one marks it as known to the program.
const char* esp_parameters(void);
void esp_ask(const char* name);
int esp_report(int64_t step, double value, const char* const* names, const double* values,
               int64_t count);
int esp_add_state(const char* name);
// The trial is complete. `value`: null without one.
int esp_finish(const double* value);
// The program gives up; the trial fails with this reason.
int esp_fail(const char* reason);

// ---- models, data, steps

typedef struct {
  const char* name;
  const char* scaling_rule;  // by name; empty: the usual one
  int64_t own_rule;          // number of a rule of the program's; -1: none
  int64_t base_batch_size;
  int64_t max_skipped_steps;
  int64_t bucket_bytes;
  double max_gradient_norm;
  int64_t is_adam;
} EspalierModelOptions;
// Adds the model that torch.ops.espalier.describe_model was given last. Returns its number.
int64_t esp_add_model(const EspalierModelOptions* options);

typedef struct {
  int64_t size;
  int64_t batch_size;
  int64_t max_batch_size;
  int64_t min_atomic_batch_size;
  int64_t max_atomic_batch_size;
  int64_t accumulation;
} EspalierData;
int esp_set_data(const EspalierData* data);
// After training began: see TrainingEngine::SetBatchSize.
int esp_set_batch_size(int64_t batch_size);

// Before the first epoch: has a microbatch rehearsed, of which nothing is left in models,
// optimizers and random generators. esp_step comes to 3 in it.
int esp_rehearse(void);
// Before the first epoch of a replica that joins a group: it has no rehearsal, for this reason.
int esp_not_rehearsed(const char* why);
// Of a microbatch as this replica's first one will be, as far as that is known; -1: failed.
int64_t esp_rehearsed_samples(void);

// Returns 1 if there is a next epoch, 0 if not.
int esp_next_epoch(int64_t epochs);
typedef struct {
  int64_t epoch;  // from 0
  int64_t begin;  // in the epoch's order of samples
  int64_t size;
  int64_t last;  // 1: its step's last one on this replica; not told of those that are forecast
} EspalierMicrobatch;
// Returns 1 if there is one, 0 when the epoch is over.
int esp_next_microbatch(EspalierMicrobatch* microbatch);
// The samples at `count` places from `begin` on, in an epoch's order of `size` samples.
int esp_samples(int64_t size, int64_t epoch, int64_t begin, int64_t count, int64_t* samples);
// What will follow, the present one first, if nothing changes. Returns how many there are.
int64_t esp_forecast(EspalierMicrobatch* microbatches, int64_t count);
// Backward belongs to the microbatch from here on.
int esp_begin_microbatch(void);
// A backward pass of the program has ended within which others were run.
int esp_end_backwards(void);
// 1: what backward brings of the model's gradients now is summed later.
int esp_defers_hooks(int64_t model);
int esp_hold_gradients(int on);
// Drops what the microbatch under way has brought to the gradients of these parameters, unless the
// model is past its step. `parameters`: places among those of the model's optimizer that are
// trained.
int esp_zero_gradients(int64_t model, const int64_t* parameters, int64_t count);
// `rates`: the learning rate of each of the model's parameter groups. `loss_scale`: by which the
// program had multiplied the loss, 1 for none. Returns what has come of it: 0 stepped, 1 skipped,
// 2 accumulated, 3 dropped, 4 left out by another replica and so by all.
int esp_step(int64_t model, const double* rates, int64_t groups, double loss_scale);
// The same of a step whose gradients the program has found not to be finite: nothing is stepped.
int esp_pass_over(int64_t model);
// The program has left out the microbatch under way, which is not its step's last: so is the step,
// by all replicas.
int esp_leave_out_microbatch(void);
int esp_end_microbatch(void);

// ---- sums over the replicas

typedef struct {
  int64_t epoch;
  int64_t step;
  int64_t call;
  int64_t state;        // 0: to be done. 1: done, its result has come from others. 2: long ago
  int64_t accumulator;  // the accumulator that is summed, from 1; 0: an evaluation
} EspalierEvaluation;
int esp_begin_evaluation(EspalierEvaluation* evaluation);
// Merges all sums. Returns 1 if that was done here, 0 if the group was lost: then another has
// formed, what was summed for this evaluation is to be summed again, and `state` is new.
// All replicas get the buffers of rank 0. `ends`: the evaluation is each replica's own, and nothing
// of it will be merged. Returns 0 if the group was lost: the state tells what is to be done now.
int esp_share_buffers(EspalierEvaluation* evaluation, int ends);
int esp_end_evaluation(EspalierEvaluation* evaluation);
// Returns 1 if the group is lost, so that nothing is gained by evaluating on.
int esp_abandoned(void);

// ---- where training is

typedef struct {
  int64_t epoch;  // from 0; -1 before the first
  int64_t step;
  int64_t cursor;
  int64_t batch_size;
  int64_t skipped_steps;
  int64_t generation;
  int64_t rank;
  int64_t replicas;
  int64_t nodes;
  int64_t microbatches;     // of the present step on this replica
  int64_t next_batch_size;  // of the next epoch, as far as is known
  double progress;
  double gain;
  double factor;  // by which the last step's rate was scaled, of the first group
} EspalierPosition;
int esp_position(EspalierPosition* position);
// Optimizer steps done; 0 before the first epoch.
int64_t esp_steps(void);
// A number with which all replicas are to seed the program's random generators, where training has
// come to a place since this was asked last from which they draw alike; else 0, and where there is
// no other replica. Never an error.
int64_t esp_take_seed(void);
// What is known of the model's gradient noise, by parameter group: |true gradient|^2, and the
// variance of a gradient of the base batch size.
int esp_noise(int64_t model, double* sqr, double* var, int64_t groups);

// ---- parcels

int64_t esp_incoming_count(void);
const void* esp_incoming(int64_t index, int64_t* size);
void esp_give(const void* bytes, int64_t size);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-*)
