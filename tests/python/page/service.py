import espalier

with espalier.Client() as client:                            # or Client("HOST:7078", token_file="ada.token")
    client.submit("study.json")                              # or a dict
    for details in client.watch("mine"):                     # now and as it changes, until it ends
        print(details["study"]["trials_by_state"], details["study"]["best_value"])
    for trial in client.trials("mine"):
        print(trial["number"], trial["state"], trial["parameters"], trial["value"])
    frame = client.dataframe("mine")
