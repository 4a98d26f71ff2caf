#pragma once

#include "google/protobuf/message.h"
#include "tuner/messages/training_figures.h"

namespace espalier {

// Figures in messages that have them: Progress and Trial. What the first protocol says in a field
// of its own is in the field of the figure's name; all others are in the map `figures`, by name.
// Zero is not said, and a figure that this build does not know is passed over.
void SetFigures(const TrainingFigures& figures, google::protobuf::Message& message);
TrainingFigures FiguresIn(const google::protobuf::Message& message);

}  // namespace espalier
