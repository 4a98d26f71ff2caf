"""Other libraries' loops as elastic trials: Hugging Face's Trainer (`.transformers`), Lightning's Trainer and Fabric
(`.lightning`)."""
