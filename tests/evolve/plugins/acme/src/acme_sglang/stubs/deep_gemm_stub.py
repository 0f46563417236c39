def get_num_sms():
    return 1
